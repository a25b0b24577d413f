// The classes of parameters of collectives that a team serves (mpi/functions.toml). Intercommunicators have bodies of
// their own for each (intercomm/intercomm.hpp).
#pragma once
#include <tuple>

#include "mpi/shim/collectives/engine/movement.hpp"
#include "mpi/shim/collectives/engine/reductions.hpp"
#include "mpi/shim/collectives/forms.hpp"
#include "mpi/shim/collectives/intercomm/intercomm.hpp"
#include "mpi/shim/collectives/intercomm/reducing.hpp"

namespace nearfield::mpi::classes {

// The operands of a call: nullptr if it only moves data, else those of its reduction.
template <class... Arguments>
constexpr const combining::Operands* moved(Arguments...) {
  return nullptr;
}
template <class N>
combining::Operands reduced(const void* send, void* recv, N count, MPI_Datatype type, MPI_Op op, MPI_Comm) {
  if constexpr (std::is_pointer_v<N>) return {{0, type, op}, send, recv};
  else return {{count, type, op}, send, recv};
}
template <class N>
combining::Operands reduced(const void* send, void* recv, N count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm) {
  return {{count, type, op}, send, recv, root};
}
inline const ReductionArguments* facts(const combining::Operands* given) { return given; }
inline const ReductionArguments* facts(const combining::Operands& given) { return &given; }

#define CLASS(name, given_by)                                                                                      \
  template <Collective collective>                                                                                 \
  struct name {                                                                                                    \
    template <class When, class... Arguments>                                                                      \
    [[gnu::always_inline]] static int serve(const char* function, const When& when, Arguments... arguments) {      \
      const MPI_Comm comm = std::get<sizeof...(arguments) - 1>(std::tie(arguments...));                            \
      const auto given = given_by(arguments...);                                                                   \
      const Admission by = admit<collective>(when, comm, facts(given));                                            \
      switch (by.who) {                                                                                            \
        [[likely]] case Server::team:                                                                              \
        case Server::nodes: return mpi::name<collective>(function, when, *by.communicator, arguments...);          \
        case Server::messages: return intercomm::name<collective>(function, when, *by.communicator, arguments...); \
        case Server::host_gathers:                                                                                 \
          if constexpr (std::is_same_v<decltype(given), const combining::Operands> && !When::overlaps)             \
            return combining::combine_by_host(*by.communicator, collective, given, function, when.host_call);      \
          [[fallthrough]];                                                                                         \
        default: return when.at_host(collective, by.reason);                                                       \
      }                                                                                                            \
    }                                                                                                              \
  };
CLASS(barrier, moved)
CLASS(one_buffer, moved)
CLASS(blocks, moved)
CLASS(rooted_blocks, moved)
CLASS(reduction, reduced)
CLASS(rooted_reduction, reduced)
CLASS(parted_reduction, reduced)
#undef CLASS

}  // namespace nearfield::mpi::classes
