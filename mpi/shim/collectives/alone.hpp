// Collectives of a communicator of one rank (MPI_COMM_SELF, a row of a grid that is one wide). Nobody else takes part:
// there is no team, every reduction is a copy whatever its operator and type are, and a copy goes from layout to layout
// in one pass. What is not plainly right goes to the host, which raises the error that the program expects (law 5 of
// docs/architecture.md); no other rank has to do the same.
//
// One function for each class of parameters (mpi/functions.def), as in movement.hpp and reductions.hpp.
#pragma once
#include <optional>

#include "mpi/shim/collectives/carry.hpp"
#include "mpi/shim/windows/window.hpp"

namespace nearfield::mpi {

// The communicator, where its one rank serves its collectives; else nullptr.
inline Communicator* find_alone(MPI_Comm comm) {
  Communicator* const state = communicator_of(comm);
  return state && state->alone && state->enabled && !revoked(comm) ? state : nullptr;
}

namespace alone {

using collectives::Collective;

struct Side {
  const void* buffer;
  MPI_Count count;
  MPI_Datatype type;
};

inline std::uint64_t begin() { return stats_on ? waiting::nanoseconds() : 0; }
int finish_slowly(Collective collective, std::uint64_t bytes, std::uint64_t start);
// The end of every such call, which began at `start`: what programs do in loops has to look after others. MPI_SUCCESS.
inline int finish(Collective collective, std::uint64_t bytes, std::uint64_t start) {
  last_algorithm = "alone";
  note_look();
  if (open_windows.load(std::memory_order_relaxed) || stats_on) [[unlikely]]
    return finish_slowly(collective, bytes, start);
  return MPI_SUCCESS;
}
// A request for what is over, unless that has failed.
int completed(int code, MPI_Request* request);

// An error code; none: arguments that the host must judge.
using Outcome = std::optional<int>;

// In place, or nothing has to be stored.
Outcome keep(Collective collective, const Side& side);
Outcome copy(Collective collective, const char* function, const Side& from, const Side& to, MPI_Comm comm);
// The same of operands and result. `gets`: the rank gets a result, else nothing is stored.
Outcome combine(Collective collective, const char* function, const void* send, void* recv, MPI_Count count,
                MPI_Datatype type, MPI_Op op, bool gets, MPI_Comm comm);

template <class HostCall>
int or_host(Collective collective, HostCall host_call, Outcome outcome) {
  return outcome ? *outcome : to_host(collective, Reason::argument, host_call);
}

template <Collective collective, class HostCall>
int one_buffer(const char*, HostCall host_call, void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm) {
  return or_host(collective, host_call, root == 0 ? keep(collective, {buffer, count, type}) : std::nullopt);
}

template <Collective collective, class HostCall>
int blocks(const char* function, HostCall host_call, const void* send, MPI_Count send_count, MPI_Datatype send_type,
           void* recv, MPI_Count recv_count, MPI_Datatype recv_type, MPI_Comm comm) {
  const Side from{send, send_count, send_type}, to{recv, recv_count, recv_type};
  return or_host(collective, host_call,
                 send == MPI_IN_PLACE ? keep(collective, to) : copy(collective, function, from, to, comm));
}

template <Collective collective, class HostCall>
int rooted_blocks(const char* function, HostCall host_call, const void* send, MPI_Count send_count,
                  MPI_Datatype send_type, void* recv, MPI_Count recv_count, MPI_Datatype recv_type, int root,
                  MPI_Comm comm) {
  constexpr bool gathers = collectives::operation(collective).gets.amount == collectives::Amount::blocks;
  const Side from{send, send_count, send_type}, to{recv, recv_count, recv_type};
  const bool in_place = (gathers ? send : recv) == MPI_IN_PLACE;
  return or_host(collective, host_call,
                 root != 0  ? std::nullopt
                 : in_place ? keep(collective, gathers ? to : from)
                            : copy(collective, function, from, to, comm));
}

template <Collective collective>
Outcome reduce(const char* function, const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op,
               MPI_Comm comm) {
  constexpr bool gets = collectives::operation(collective).gets.has(0, 0);
  return combine(collective, function, send, recv, count, type, op, gets, comm);
}

template <Collective collective, class HostCall>
int reduction(const char* function, HostCall host_call, const void* send, void* recv, MPI_Count count,
              MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return or_host(collective, host_call, reduce<collective>(function, send, recv, count, type, op, comm));
}

template <Collective collective, class HostCall>
int rooted_reduction(const char* function, HostCall host_call, const void* send, void* recv, MPI_Count count,
                     MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  return or_host(collective, host_call,
                 root == 0 ? reduce<collective>(function, send, recv, count, type, op, comm) : std::nullopt);
}

}  // namespace alone
}  // namespace nearfield::mpi
