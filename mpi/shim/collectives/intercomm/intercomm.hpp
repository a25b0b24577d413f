// Collectives of an intercommunicator: each group gets what the other gives. All consist of edges (exchange.hpp), each
// of which connects a rank of one group with a rank of the other. The root passes MPI_ROOT; the other ranks of its
// group pass MPI_PROC_NULL and move nothing.
//
// As in movement.hpp there is one function for each class of parameters (mpi/functions.toml), for all forms; those of
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

// Each rank sends a byte to each rank of the other group, so no rank leaves before all of the other group have entered.
// All calls share the two buffers, since the value of the byte means nothing.
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
