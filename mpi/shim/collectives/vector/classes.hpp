// The classes of parameters of collectives that are made of edges (mpi/functions.toml).
#pragma once
#include "mpi/shim/collectives/forms.hpp"
#include "mpi/shim/collectives/vector/exchanging.hpp"
#include "mpi/shim/collectives/vector/neighbors.hpp"
#include "mpi/shim/collectives/vector/varying.hpp"

namespace nearfield::mpi::classes {

#define CLASS(name)                                                                     \
  template <Collective collective>                                                      \
  struct name {                                                                         \
    template <class When, class... Arguments>                                           \
    static int serve(const char* function, const When& when, Arguments... arguments) {  \
      const MPI_Comm comm = std::get<sizeof...(arguments) - 1>(std::tie(arguments...)); \
      const Admission by = admit<collective>(when, comm, nullptr);                      \
      if (by.who == Server::host) return when.at_host(collective, by.reason);           \
      return mpi::name<collective>(function, when, by, arguments...);                   \
    }                                                                                   \
  };
CLASS(all_gathered)
CLASS(gathered)
CLASS(scattered)
CLASS(neighbors_block)
CLASS(neighbors_blocks)
CLASS(neighbors_gathered)
CLASS(neighbors_varying)
CLASS(neighbors_typed)
CLASS(all_pairs)
#undef CLASS

}  // namespace nearfield::mpi::classes
