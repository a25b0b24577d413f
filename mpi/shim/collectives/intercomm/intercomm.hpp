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

template <class When>
int exchanged(Collective collective, const char* function, When when, Communicator& inter, const PartnerData& send,
              const PartnerData& receive) {
  Exchanged operation{send, receive, inter.size, inter.rank, false};
  return exchange(collective, function, inter, when, operation, [&] {
    return !send.in_place() && !receive.in_place() && operation.send.prepare() && operation.receive.prepare();
  });
}

// Each rank sends a byte to each rank of the other group, so no rank leaves before all of the other group have entered.
// All calls share the two buffers, since the value of the byte means nothing.
inline constinit char nothing_said = 0, nothing_heard = 0;
template <Collective collective, class When>
int barrier(const char* function, When when, Communicator& c, MPI_Comm) {
  return exchanged(collective, function, when, c, PartnerData::same(&nothing_said, 1, host.byte),
                   PartnerData::same(&nothing_heard, 1, host.byte));
}

template <Collective collective, class When>
int one_buffer(const char* function, When when, Communicator& c, void* buffer, MPI_Count count, MPI_Datatype type,
               int root, MPI_Comm) {
  const PartnerData data = PartnerData::same(buffer, count, type);
  return rooted(collective, false, function, when, c, data, data, root);
}

template <Collective collective, class When>
int blocks(const char* function, When when, Communicator& c, const void* send, MPI_Count send_count,
           MPI_Datatype send_type, void* recv, MPI_Count recv_count, MPI_Datatype recv_type, MPI_Comm) {
  constexpr bool gives_blocks = collectives::operation(collective).gives.amount == collectives::Amount::blocks;
  const PartnerData from = (gives_blocks ? &PartnerData::blocks : &PartnerData::same)(send, send_count, send_type);
  return exchanged(collective, function, when, c, from, PartnerData::blocks(recv, recv_count, recv_type));
}

template <Collective collective, class When>
int rooted_blocks(const char* function, When when, Communicator& c, const void* send, MPI_Count send_count,
                  MPI_Datatype send_type, void* recv, MPI_Count recv_count, MPI_Datatype recv_type, int root,
                  MPI_Comm) {
  constexpr bool gathers = collectives::operation(collective).gets.amount == collectives::Amount::blocks;
  if constexpr (gathers)
    return rooted(collective, true, function, when, c, PartnerData::same(send, send_count, send_type),
                  PartnerData::blocks(recv, recv_count, recv_type), root);
  else
    return rooted(collective, false, function, when, c, PartnerData::same(recv, recv_count, recv_type),
                  PartnerData::blocks(send, send_count, send_type), root);
}

}  // namespace intercomm
}  // namespace nearfield::mpi
