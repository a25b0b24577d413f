// Receives. Where a communicator spans nodes, the message of a receive from any source may be ours or the host's
// (any_source.hpp).
#pragma once
#include "engine/base/out_of_memory.hpp"
#include "mpi/shim/p2p/landing.hpp"
#include "mpi/shim/p2p/short.hpp"
#include "mpi/shim/process/at_host.hpp"

namespace nearfield::mpi {

// On some hosts it is an error if a message ends within an element of a type with gaps. Here it is one only if the
// message ends within the first element: hosts do not tell where in a later element it ends.
inline int judge(const messages::Request& request, MPI_Datatype type) {
  const int code = outcome(request);
  const layout::View& view = request.data.view;
  if (!abi::judges_elements || view.dense() || !request.received || request.received % view.size == 0 ||
      code != MPI_SUCCESS) [[likely]]
    return code;
  MPI_Status status{};
  MPI_Count elements = 1;
  host.Status_set_elements_x(&status, host.byte, MPI_Count(request.received));
  host.Get_elements_x(&status, type, &elements);
  return elements == 0 || elements == MPI_UNDEFINED ? MPI_ERR_TYPE : MPI_SUCCESS;
}

// Receives into a packed copy: data of a type that is not described, or on a device.
template <class N>
[[gnu::noinline]] int receive_apart(TypedData& typed, const Communicator& c, void* buffer, N count, MPI_Datatype type,
                                    int source, int tag, MPI_Status* status) {
  const auto packed = packed_copy(typed, buffer, count, type, c.comm);
  messages::Request request;
  prepare_receive(request, c, source, tag, typed.data);
  request.attended = true;
  the_messenger->start(request);
  wait_for(request, &c);
  set_status(status, request.envelope.source, request.envelope.tag, counted(request), false);
  return report(c.comm, packed ? land(*packed, request) : outcome(request));
}

template <Function number, bool persistent, class N>
static int make_receive(void* buffer, N count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                        MPI_Request* request);

// Receives by the host: while any-source receives are under way by a request, so that the wait can progress both sides.
template <class HostCall, class HostStart>
int receive_by_host(const Communicator* c, int tag, MPI_Status* status, HostCall host_call, HostStart host_start) {
  if (!any_source_requests.load(std::memory_order_relaxed)) [[likely]]
    return blocking_host(host_call);
  before_host_receives(c, tag);
  MPI_Request request;
  const int code = call_host([&] { return host_start(&request); });
  return code == MPI_SUCCESS ? Wait(&request, status) : code;
}

[[gnu::always_inline]] inline void receive_and_wait(messages::Request& request, const Communicator& c,
                                                    const layout::Data& data, int source, int tag, MPI_Status* status) {
  prepare_receive(request, c, source, tag, data);
  request.attended = true;
  the_messenger->start(request);
  wait_for(request, &c);
  set_status(status, request.envelope.source, request.envelope.tag, counted(request), false);
}

[[gnu::noinline]] inline int receive_plain(const char* function, const PlainMessage& from, void* buffer, int tag,
                                           MPI_Status* status) {
  return guarded(from.communicator->comm, function, [&]() -> int {
    messages::Request request;
    receive_and_wait(request, *from.communicator, from.data(buffer), from.rank, tag, status);
    return report(from.communicator->comm, outcome(request));
  });
}

[[gnu::always_inline]] inline void start_receive(const Communicator& c, const layout::Data& data, int source, int tag,
                                                 MPI_Request* request) {
  UserRequest* const user = new_request(c.comm);
  user->active = true;
  prepare_receive(user->request, c, source, tag, data);
  *request = handle_of(user);
  the_messenger->start(user->request);
}

// `start`: the host's function that makes a request of such a receive.
template <Function number, Function start, class N>
[[gnu::noinline]] static int receive_anything(void* buffer, N count, MPI_Datatype type, int source, int tag,
                                              MPI_Comm comm, MPI_Status* status) try {
  constexpr const char* function = name_of(number);
  const auto host_call = [&]() -> int { return at_host<number>(buffer, count, type, source, tag, comm, status); };
  const auto host_start = [&](MPI_Request* made) -> int {
    return at_host<start>(buffer, count, type, source, tag, comm, made);
  };
  Communicator* const c = channel(comm);
  if (!c || !good_source(*c, source, tag)) return receive_by_host(c, tag, status, host_call, host_start);
  TypedData typed(buffer, count, type);
  if (!typed.good) return blocking_host(host_call);
  if (source == MPI_PROC_NULL) {
    set_proc_null_status(status);
    return MPI_SUCCESS;
  }
  return guarded(comm, function, [&]() -> int {
    if (may_cross(*c, source)) [[unlikely]] {
      before_host_receives(c, tag);
      if (!typed.packs() && !devices::possible())
        return receive_from_anybody(typed.data, *c, buffer, count, type, tag, status);
      MPI_Request request;
      const int code = make_receive<start, false>(buffer, count, type, source, tag, comm, &request);
      return code == MPI_SUCCESS ? Wait(&request, status) : code;
    }
    if (typed.packs() || devices::possible()) [[unlikely]]
      return receive_apart(typed, *c, buffer, count, type, source, tag, status);
    messages::Request request;
    receive_and_wait(request, *c, typed.data, source, tag, status);
    return report(comm, judge(request, type));
  });
} catch (const OutOfMemory&) {
  return raise(comm, name_of(number), "out of memory", MPI_ERR_NO_MEM);
}

template <Function number, Function start, class N>
static int receive(void* buffer, N count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status) {
  const PlainMessage from = plain_message(buffer, count, type, source, tag, comm);
  if (receive_short(from, buffer, tag, status)) [[likely]]
    return MPI_SUCCESS;
  if (from.member >= 0) return receive_plain(name_of(number), from, buffer, tag, status);
  return receive_anything<number, start>(buffer, count, type, source, tag, comm, status);
}

template <Function number, bool persistent, class N>
[[gnu::noinline]] static int make_any_receive(void* buffer, N count, MPI_Datatype type, int source, int tag,
                                              MPI_Comm comm, MPI_Request* request) try {
  constexpr const char* function = name_of(number);
  const auto host_call = [&]() -> int { return at_host<number>(buffer, count, type, source, tag, comm, request); };
  Communicator* const c = channel(comm);
  if (!c || !good_source(*c, source, tag) || !request) {
    before_host_receives(c, tag);
    return making_host(persistent, request, host_call);
  }
  TypedData typed(buffer, count, type);
  if (!typed.good) return making_host(persistent, request, host_call);
  return guarded(comm, function, [&]() -> int {
    const bool crosses = may_cross(*c, source);
    if (!persistent && source != MPI_PROC_NULL && !typed.layout && !crosses && !devices::possible()) [[likely]] {
      start_receive(*c, typed.data, source, tag, request);
      return MPI_SUCCESS;
    }
    auto message = std::make_unique<Message>(comm);
    message->proc_null = source == MPI_PROC_NULL;
    if (!message->proc_null) message->packed = packed_copy(typed, buffer, count, type, comm, true);
    message->layout = std::move(typed.layout);
    if (message->proc_null) message->request.is_send = false;
    else prepare_receive(message->request, *c, source, tag, typed.data);
    message->keep();
    std::unique_ptr<Activity> receive = std::move(message);
    if (crosses) {
      std::unique_ptr<Message> near(static_cast<Message*>(receive.release()));
      receive = std::make_unique<AnySourceRequest>(std::move(near), buffer, MPI_Count(count), type, tag, *c);
    }
    return report(comm, make_request(comm, std::move(receive), persistent, request));
  });
} catch (const OutOfMemory&) {
  return raise(comm, name_of(number), "out of memory", MPI_ERR_NO_MEM);
}

template <Function number, bool persistent, class N>
static int make_receive(void* buffer, N count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                        MPI_Request* request) {
  if constexpr (!persistent) {
    const PlainMessage from = plain_message(buffer, count, type, source, tag, comm);
    if (from.member >= 0 && request) [[likely]]
      return guarded(comm, name_of(number), [&]() -> int {
        start_receive(*from.communicator, from.data(buffer), source, tag, request);
        return MPI_SUCCESS;
      });
  }
  return make_any_receive<number, persistent>(buffer, count, type, source, tag, comm, request);
}

}  // namespace nearfield::mpi
