// Collectives of an intercommunicator: each group gets what the other gives. All are made of edges (exchange.hpp), and
// none lies within a group. The root passes MPI_ROOT, the others of its group MPI_PROC_NULL, who move nothing.
//
// One function for each class of parameters (mpi/functions.toml), as in movement.hpp, for all forms; those of
// reductions are in reducing.hpp.
#pragma once
#include "mpi/shim/collectives/vector/varying.hpp"

namespace nearfield::mpi {

namespace intercomm {

template <class When, class Send, class Receive>
int exchanged(Collective collective, const char* function, When when, Communicator& inter, Send send, Receive receive) {
  using Operation = Exchanged<Send, Receive>;
  return exchange<Operation>(collective, function, inter, when, [&](const Communicator& c, Operation& operation) {
    operation = {send, receive, c.size, c.rank, false};
    return send.buffer != MPI_IN_PLACE && receive.buffer != MPI_IN_PLACE && operation.send.prepare() &&
           operation.receive.prepare();
  });
}

// A word from all of one group to all of the other: nobody leaves before all of the others have come. What it says is
// nothing, so all calls share its memory.
inline constinit char nothing_said = 0, nothing_heard = 0;
template <Collective collective, class When>
int barrier(const char* function, When when, Communicator& c, MPI_Comm) {
  return exchanged(collective, function, when, c, Same<int>{&nothing_said, 1, host.byte},
                   Same<int>{&nothing_heard, 1, host.byte});
}

template <Collective collective, class When>
int one_buffer(const char* function, When when, Communicator& c, void* buffer, MPI_Count count, MPI_Datatype type,
               int root, MPI_Comm) {
  const Same<MPI_Count> data{buffer, count, type};
  return rooted<collective, false>(function, when, c, data, data, root);
}

template <Collective collective, class When>
int blocks(const char* function, When when, Communicator& c, const void* send, MPI_Count send_count,
           MPI_Datatype send_type, void* recv, MPI_Count recv_count, MPI_Datatype recv_type, MPI_Comm) {
  const Blocks<MPI_Count> to{recv, recv_count, recv_type};
  void* const from = const_cast<void*>(send);
  if constexpr (collectives::operation(collective).gives.amount == collectives::Amount::blocks)
    return exchanged(collective, function, when, c, Blocks<MPI_Count>{from, send_count, send_type}, to);
  else return exchanged(collective, function, when, c, Same<MPI_Count>{from, send_count, send_type}, to);
}

template <Collective collective, class When>
int rooted_blocks(const char* function, When when, Communicator& c, const void* send, MPI_Count send_count,
                  MPI_Datatype send_type, void* recv, MPI_Count recv_count, MPI_Datatype recv_type, int root,
                  MPI_Comm) {
  constexpr bool gathers = collectives::operation(collective).gets.amount == collectives::Amount::blocks;
  void* const from = const_cast<void*>(send);
  if constexpr (gathers)
    return rooted<collective, true>(function, when, c, Same<MPI_Count>{from, send_count, send_type},
                                    Blocks<MPI_Count>{recv, recv_count, recv_type}, root);
  else
    return rooted<collective, false>(function, when, c, Same<MPI_Count>{recv, recv_count, recv_type},
                                     Blocks<MPI_Count>{from, send_count, send_type}, root);
}

}  // namespace intercomm
}  // namespace nearfield::mpi
