// Sends of all modes, blocking, non-blocking and persistent. A message that leaves at once needs no request of its own.
// A send that is more than a plain message (persistent, packed, with gaps, from device memory) becomes a Message behind
// a request (activity.hpp). Each call gives its message to the messenger before it returns, so a thread's sends keep
// their order.
#pragma once
#include "engine/base/function_ref.hpp"
#include "mpi/shim/p2p/activity.hpp"
#include "mpi/shim/p2p/short.hpp"
#include "mpi/shim/process/at_host.hpp"

namespace nearfield::mpi {

// Returns whether a send of that mode is complete once its data have been copied from the user's buffer.
constexpr bool leaves_early(SendMode mode) { return mode == SendMode::standard || mode == SendMode::ready; }

[[gnu::always_inline]] inline int send_data(SendMode mode, const layout::Data& data, Communicator& c, int dest,
                                            int tag) {
  const messages::Envelope envelope{c.context, c.rank, tag};
  if (mode == SendMode::buffered) return report(c.comm, send_buffered(c.comm, envelope, c.members[dest], data));
  if (mode != SendMode::synchronous && the_messenger->send_at_once(c.members[dest], envelope, data)) return MPI_SUCCESS;
  messages::Request request;
  prepare_send(request, c, dest, tag, mode, data);
  request.attended = true;
  the_messenger->start(request);
  wait_for(request);
  return report(c.comm, outcome(request));
}

[[gnu::noinline]] inline int send_plain(const char* function, const PlainMessage& to, const void* buffer, int tag) {
  return guarded(to.communicator->comm, function, [&]() -> int {
    return send_data(SendMode::standard, to.data(buffer), *to.communicator, to.rank, tag);
  });
}

// Functions that end in _slowly stay apart from the short paths: inlined there, they would make these store all
// arguments for the host's call (sendrecv.hpp).

// A send of any kind. `host_call`: the host's function with the same arguments; `host_start`: its function that makes a
// request of such a send.
int send_anything(const char* function, SendMode mode, const void* buffer, MPI_Count count, MPI_Datatype type, int dest,
                  int tag, MPI_Comm comm, FunctionRef<int()> host_call, FunctionRef<int(MPI_Request*)> host_start);

// `start`: the host's function that makes a request of such a send.
template <Function number, SendMode mode, Function start, class N>
[[gnu::noinline]] static int send_slowly(const void* buffer, N count, MPI_Datatype type, int dest, int tag,
                                         MPI_Comm comm) {
  return send_anything(
      name_of(number), mode, buffer, count, type, dest, tag, comm,
      [&]() -> int { return at_host<number>(buffer, count, type, dest, tag, comm); },
      [&](MPI_Request* made) -> int { return at_host<start>(buffer, count, type, dest, tag, comm, made); });
}

template <Function number, SendMode mode, Function start, class N>
static int send(const void* buffer, N count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  if constexpr (leaves_early(mode)) {
    const PlainMessage to = plain_message(buffer, count, type, dest, tag, comm);
    if (send_short(to, buffer, tag)) [[likely]]
      return MPI_SUCCESS;
    if (to.member >= 0) return send_plain(name_of(number), to, buffer, tag);
  }
  return send_slowly<number, mode, start>(buffer, count, type, dest, tag, comm);
}

// MPI_Isend and MPI_Send_init and their relatives; `persistent`: MPI_Start will start it.
int make_any_send(const char* function, SendMode mode, bool persistent, const void* buffer, MPI_Count count,
                  MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request* request,
                  FunctionRef<int()> host_call);

template <Function number, SendMode mode, bool persistent, class N>
[[gnu::noinline]] static int make_send_slowly(const void* buffer, N count, MPI_Datatype type, int dest, int tag,
                                              MPI_Comm comm, MPI_Request* request) {
  return make_any_send(name_of(number), mode, persistent, buffer, count, type, dest, tag, comm, request,
                       [&]() -> int { return at_host<number>(buffer, count, type, dest, tag, comm, request); });
}

template <Function number, SendMode mode, bool persistent, class N>
static int make_send(const void* buffer, N count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                     MPI_Request* request) {
  if constexpr (!persistent && leaves_early(mode)) {
    const MPI_Request sent = sent_at_once.load(std::memory_order_relaxed);
    if (sent != MPI_Request{} && request &&
        send_short(plain_message(buffer, count, type, dest, tag, comm), buffer, tag)) [[likely]] {
      *request = sent;
      return MPI_SUCCESS;
    }
  }
  return make_send_slowly<number, mode, persistent>(buffer, count, type, dest, tag, comm, request);
}

}  // namespace nearfield::mpi
