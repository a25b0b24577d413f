// The classes of parameters of collectives that a team serves (mpi/functions.toml). Communicators of one rank and of
// two groups have bodies of their own for each (single/alone.hpp, intercomm/across.hpp).
#pragma once
#include <tuple>

#include "mpi/shim/collectives/engine/movement.hpp"
#include "mpi/shim/collectives/engine/reductions.hpp"
#include "mpi/shim/collectives/forms.hpp"
#include "mpi/shim/collectives/intercomm/across.hpp"
#include "mpi/shim/collectives/intercomm/across_reducing.hpp"
#include "mpi/shim/collectives/single/alone.hpp"

namespace nearfield::mpi::classes {

#define CLASS(name)                                                                                           \
  template <Collective collective>                                                                            \
  struct name {                                                                                               \
    template <class When, class... Arguments>                                                                 \
    [[gnu::always_inline]] static int serve(const char* function, const When& when, Arguments... arguments) { \
      const MPI_Comm comm = std::get<sizeof...(arguments) - 1>(std::tie(arguments...));                       \
      if (is_apart(comm)) [[unlikely]] {                                                                      \
        if (find_alone(comm))                                                                                 \
          return alone::serve(collective, function, when, alone::name<collective>(arguments...), comm);       \
        if (find_across(comm)) return across::name<collective>(function, when, arguments...);                 \
      }                                                                                                       \
      return mpi::name<collective>(function, when, arguments...);                                             \
    }                                                                                                         \
  };
CLASS(one_buffer)
CLASS(blocks)
CLASS(rooted_blocks)
CLASS(reduction)
CLASS(rooted_reduction)
CLASS(parted_reduction)
#undef CLASS

}  // namespace nearfield::mpi::classes
