// Sends of all modes, blocking, non-blocking and persistent. A message that leaves at once needs no request of its own.
// A send that is more than a plain message (persistent, packed, with gaps, from device memory) becomes a Message behind
// a request (activity.hpp). Each call gives its message to the messenger before it returns, so a thread's sends keep
// their order.
#pragma once
#include "engine/base/out_of_memory.hpp"
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

// Sends by the host: while any-source receives are under way by a request, so that the wait can progress both sides.
template <class HostCall, class HostStart>
int send_by_host(HostCall host_call, HostStart host_start) {
  if (!any_source_requests.load(std::memory_order_relaxed)) [[likely]]
    return blocking_host(host_call);
  MPI_Request request;
  const int code = call_host([&] { return host_start(&request); });
  return code == MPI_SUCCESS ? Wait(&request, MPI_STATUS_IGNORE) : code;
}

[[gnu::noinline]] inline int send_plain(const char* function, const PlainMessage& to, const void* buffer, int tag) {
  return guarded(to.communicator->comm, function, [&]() -> int {
    return send_data(SendMode::standard, to.data(buffer), *to.communicator, to.rank, tag);
  });
}

// `start`: the host's function that makes a request of such a send.
template <Function number, SendMode mode, Function start, class N>
[[gnu::noinline]] static int send_anything(const void* buffer, N count, MPI_Datatype type, int dest, int tag,
                                           MPI_Comm comm) try {
  constexpr const char* function = name_of(number);
  const auto host_call = [&]() -> int { return at_host<number>(buffer, count, type, dest, tag, comm); };
  const auto host_start = [&](MPI_Request* made) -> int {
    return at_host<start>(buffer, count, type, dest, tag, comm, made);
  };
  Communicator* const c = channel(comm);
  if (!c || !good_destination(*c, dest, tag)) return send_by_host(host_call, host_start);
  TypedData typed(buffer, count, type);
  if (!typed.good) return blocking_host(host_call);
  if (dest == MPI_PROC_NULL) return MPI_SUCCESS;
  return guarded(comm, function, [&]() -> int {
    const auto packed = packed_copy(typed, buffer, count, type, comm);
    if (packed)
      if (const int code = packed->pack_all(); code != MPI_SUCCESS) return code;
    return send_data(mode, typed.data, *c, dest, tag);
  });
} catch (const OutOfMemory&) {
  return raise(comm, name_of(number), "out of memory", MPI_ERR_NO_MEM);
}

template <Function number, SendMode mode, Function start, class N>
static int send(const void* buffer, N count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  if constexpr (leaves_early(mode)) {
    const PlainMessage to = plain_message(buffer, count, type, dest, tag, comm);
    if (send_short(to, buffer, tag)) [[likely]]
      return MPI_SUCCESS;
    if (to.member >= 0) return send_plain(name_of(number), to, buffer, tag);
  }
  return send_anything<number, mode, start>(buffer, count, type, dest, tag, comm);
}

// MPI_Isend and MPI_Send_init and their relatives; `persistent`: MPI_Start will start it.
template <Function number, SendMode mode, bool persistent, class N>
[[gnu::noinline]] static int make_any_send(const void* buffer, N count, MPI_Datatype type, int dest, int tag,
                                           MPI_Comm comm, MPI_Request* request) try {
  constexpr const char* function = name_of(number);
  const auto host_call = [&]() -> int { return at_host<number>(buffer, count, type, dest, tag, comm, request); };
  Communicator* const c = channel(comm);
  if (!c || !good_destination(*c, dest, tag) || !request) return making_host(persistent, request, host_call);
  TypedData typed(buffer, count, type);
  if (!typed.good) return making_host(persistent, request, host_call);
  return guarded(comm, function, [&]() -> int {
    const bool proc_null = dest == MPI_PROC_NULL;
    auto packed = proc_null ? nullptr : packed_copy(typed, buffer, count, type, comm, true);
    constexpr bool early = !persistent && leaves_early(mode);
    if (early && !proc_null && !packed &&
        the_messenger->send_at_once(c->members[dest], {c->context, c->rank, tag}, typed.data)) {
      *request = common_send();
      return MPI_SUCCESS;
    }
    if (early && !proc_null && !packed && !typed.layout) {
      UserRequest* const user = new_request(comm);
      user->active = true;
      prepare_send(user->request, *c, dest, tag, mode, typed.data);
      *request = handle_of(user);
      the_messenger->start(user->request);
      return MPI_SUCCESS;
    }
    auto message = std::make_unique<Message>(comm);
    message->mode = mode;
    message->proc_null = proc_null;
    message->layout = std::move(typed.layout);
    message->packed = std::move(packed);
    if (proc_null) message->request.is_send = true;
    else prepare_send(message->request, *c, dest, tag, mode, typed.data);
    message->keep();
    return report(comm, make_request(comm, std::move(message), persistent, request));
  });
} catch (const OutOfMemory&) {
  return raise(comm, name_of(number), "out of memory", MPI_ERR_NO_MEM);
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
  return make_any_send<number, mode, persistent>(buffer, count, type, dest, tag, comm, request);
}

}  // namespace nearfield::mpi
