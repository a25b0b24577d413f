// Collectives of a communicator of one rank (MPI_COMM_SELF, a row of a grid that is one wide). Nobody else takes part:
// there is no team, every reduction is a copy whatever its operator and type are, and a copy goes from layout to layout
// in one pass. What is not plainly right goes to the host, which raises the error that the program expects (law 5 of
// docs/architecture.md); no other rank has to do the same.
//
// One function for each class of parameters (mpi/functions.toml), as in movement.hpp and reductions.hpp. `When`:
// form.hpp.
#pragma once
#include <optional>

#include "mpi/shim/collectives/engine/carry.hpp"
#include "mpi/shim/rma/window.hpp"

namespace nearfield::mpi {

namespace self {

using collectives::Collective;

struct LocalBuffer {
  const void* buffer;
  MPI_Count count;
  MPI_Datatype type;
};

inline std::uint64_t begin() { return counting() ? waiting::nanoseconds() : 0; }
int finish_slowly(Collective collective, std::uint64_t bytes, std::uint64_t start);
// The end of every such call, which began at `start`: what programs do in loops has to look after others. MPI_SUCCESS.
inline int finish(Collective collective, std::uint64_t bytes, std::uint64_t start) {
  *last_algorithm = "self";
  note_look();
  if (open_windows.load(std::memory_order_relaxed) || counting()) [[unlikely]]
    return finish_slowly(collective, bytes, start);
  return MPI_SUCCESS;
}

// An error code; none: arguments that the host must judge.
using Outcome = std::optional<int>;

// What the rank does with its buffers: copies one side to the other, or combines, which is the same for one rank.
struct Work {
  enum Kind : std::uint8_t { wrong, keep, copy, combine } kind = wrong;
  LocalBuffer from{}, to{};
  MPI_Op op{};
  bool gets = true;  // the rank gets a result, else nothing is stored
};
Outcome perform(Collective collective, const char* function, const Work& work, MPI_Comm comm);
// A request that does it at each start; none: arguments that the host must judge. Throws std::bad_alloc.
Outcome plan(Collective collective, const char* function, const Work& work, MPI_Comm comm, MPI_Request* request);

template <class When>
int serve(Collective collective, const char* function, const When& when, const Work& work, MPI_Comm comm) {
  if constexpr (When::plans) {
    const Outcome outcome = plan(collective, function, work, comm, when.request);
    return outcome ? *outcome : when.at_host(collective, Reason::argument);
  } else {
    const Outcome outcome = perform(collective, function, work, comm);
    return outcome ? when.done(*outcome) : when.at_host(collective, Reason::argument);
  }
}

inline Work kept(const void* buffer, MPI_Count count, MPI_Datatype type) {
  return {Work::keep, {}, {buffer, count, type}};
}

template <Collective collective>
Work barrier(MPI_Comm) {
  static constinit char nothing = 0;
  return kept(&nothing, 0, host.byte);
}

template <Collective collective>
Work one_buffer(void* buffer, MPI_Count count, MPI_Datatype type, int root, MPI_Comm) {
  return root == 0 ? kept(buffer, count, type) : Work{};
}

template <Collective collective>
Work blocks(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv, MPI_Count recv_count,
            MPI_Datatype recv_type, MPI_Comm) {
  if (send == MPI_IN_PLACE) return kept(recv, recv_count, recv_type);
  return {Work::copy, {send, send_count, send_type}, {recv, recv_count, recv_type}};
}

template <Collective collective>
Work rooted_blocks(const void* send, MPI_Count send_count, MPI_Datatype send_type, void* recv, MPI_Count recv_count,
                   MPI_Datatype recv_type, int root, MPI_Comm) {
  constexpr bool gathers = collectives::operation(collective).gets.amount == collectives::Amount::blocks;
  if (root != 0) return {};
  if (gathers && send == MPI_IN_PLACE) return kept(recv, recv_count, recv_type);
  if (!gathers && recv == MPI_IN_PLACE) return kept(send, send_count, send_type);
  return {Work::copy, {send, send_count, send_type}, {recv, recv_count, recv_type}};
}

template <Collective collective>
Work reduction(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm) {
  constexpr bool gets = collectives::operation(collective).gets.has(0, 0);
  return {Work::combine, {send, count, type}, {recv, count, type}, op, gets};
}

template <Collective collective, class N>
Work parted_reduction(const void* send, void* recv, const N* counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return counts ? reduction<collective>(send, recv, MPI_Count(counts[0]), type, op, comm) : Work{};
}

template <Collective collective>
Work rooted_reduction(const void* send, void* recv, MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                      MPI_Comm comm) {
  return root == 0 ? reduction<collective>(send, recv, count, type, op, comm) : Work{};
}

}  // namespace self
}  // namespace nearfield::mpi
