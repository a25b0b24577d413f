// Sends of all modes, blocking, non-blocking and persistent. A send that completes at once makes no request; one that
// is no plain message (persistent, packed, of a layout, on a device) becomes an activity (activity.hpp). The order of a
// thread's sends is that of its calls: each is passed to the messenger before the next begins.
#include "engine/base/out_of_memory.hpp"
#include "mpi/shim/p2p/activity.hpp"

namespace nearfield::mpi {

int largest_tag = 32767;

namespace {

// Sends data of a type that is not described.
int send_packed(SendMode mode, const char* function, Packed packed, int dest, int tag, MPI_Comm comm);

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

// While any-source receives are under way it uses a request, so that the wait can progress both sides.
template <class HostCall, class HostStart>
int send_by_host(HostCall host_call, HostStart host_start) {
  if (!any_source_requests.load(std::memory_order_relaxed)) [[likely]]
    return blocking_host(host_call);
  MPI_Request request;
  const int code = passing_host([&] { return host_start(&request); });
  return code == MPI_SUCCESS ? Wait(&request, MPI_STATUS_IGNORE) : code;
}

template <class N, class HostCall, class HostStart>
int send(SendMode mode, const char* function, const void* buffer, N count, MPI_Datatype type, int dest, int tag,
         MPI_Comm comm, HostCall host_call, HostStart host_start) try {
  Communicator* const c = channel(comm);
  if (!c || !good_destination(*c, dest, tag)) return send_by_host(host_call, host_start);
  TypedData typed(buffer, count, type);
  if (!typed.good) return blocking_host(host_call);
  if (dest == MPI_PROC_NULL) return MPI_SUCCESS;
  if (typed.packs()) [[unlikely]]
    return send_packed(mode, function, Packed(const_cast<void*>(buffer), count, type, comm), dest, tag, comm);
  return guarded(comm, function, [&]() -> int {
    if (devices::possible()) [[unlikely]] {
      const auto stage = devices::stage(typed.data, true);
      return send_data(mode, typed.data, *c, dest, tag);
    }
    return send_data(mode, typed.data, *c, dest, tag);
  });
} catch (const OutOfMemory&) {
  return raise(comm, function, "out of memory", MPI_ERR_NO_MEM);
}

int send_packed(SendMode mode, const char* function, Packed packed, int dest, int tag, MPI_Comm comm) {
  return guarded(comm, function, [&]() -> int {
    const layout::Data data = packed.data();
    if (const int code = packed.pack_all(); code != MPI_SUCCESS) return code;
    auto never = [](auto...) { return MPI_ERR_INTERN; };
    return send(mode, function, data.address, MPI_Count(data.bytes), host.byte, dest, tag, comm, never, never);
  });
}

// Isend and the _init forms: if `persistent`, MPI_Start starts it.
template <class N, class HostCall>
int make_send(SendMode mode, bool persistent, const char* function, const void* buffer, N count, MPI_Datatype type,
              int dest, int tag, MPI_Comm comm, MPI_Request* request, HostCall host_call) try {
  Communicator* const c = channel(comm);
  if (!c || !good_destination(*c, dest, tag) || !request) return making_host(persistent, request, host_call);
  TypedData typed(buffer, count, type);
  if (!typed.good) return making_host(persistent, request, host_call);
  return guarded(comm, function, [&]() -> int {
    auto stage = devices::stage(typed.data, !persistent);
    const bool plain = !persistent && (mode == SendMode::standard || mode == SendMode::ready);
    if (plain && dest != MPI_PROC_NULL && !typed.packs() &&
        the_messenger->send_at_once(c->members[dest], {c->context, c->rank, tag}, typed.data)) {
      *request = common_send();
      return MPI_SUCCESS;
    }
    if (plain && dest != MPI_PROC_NULL && !typed.packs() && !typed.layout && !stage) {
      UserRequest* const user = new_request(comm);
      user->active = true;
      prepare_send(user->request, *c, dest, tag, mode, typed.data);
      *request = handle_of(user);
      the_messenger->start(user->request);
      return MPI_SUCCESS;
    }
    auto message = std::make_unique<Message>(comm);
    if (typed.packs() && dest != MPI_PROC_NULL) {
      message->packed = std::make_unique<Packed>(const_cast<void*>(buffer), count, type, comm);
      message->packed->keep_type();
      typed.data = message->packed->data();
    }
    message->mode = mode;
    message->proc_null = dest == MPI_PROC_NULL;
    message->fetches = persistent;
    message->layout = std::move(typed.layout);
    message->send_stage = std::move(stage);
    if (message->proc_null) message->request.is_send = true;
    else prepare_send(message->request, *c, dest, tag, mode, typed.data);
    message->keep();
    return report(comm, make_request(comm, std::move(message), persistent, request));
  });
} catch (const OutOfMemory&) {
  return raise(comm, function, "out of memory", MPI_ERR_NO_MEM);
}

}  // namespace

#define NEARFIELD_SEND(Name, Start, mode)                                                             \
  int Name(const void* b, int n, MPI_Datatype t, int dest, int tag, MPI_Comm c) {                     \
    return send(                                                                                      \
        mode, "MPI_" #Name, b, n, t, dest, tag, c, [&] { return host.Name(b, n, t, dest, tag, c); },  \
        [&](MPI_Request* r) { return host.Start(b, n, t, dest, tag, c, r); });                        \
  }                                                                                                   \
  int Name##_c(const void* b, MPI_Count n, MPI_Datatype t, int dest, int tag, MPI_Comm c) {           \
    return send(                                                                                      \
        mode, "MPI_" #Name "_c", b, n, t, dest, tag, c,                                               \
        [&] { return large(host.Name##_c, host.Name, "MPI_" #Name "_c", c, b, n, t, dest, tag, c); }, \
        [&](MPI_Request* r) {                                                                         \
          return large(host.Start##_c, host.Start, "MPI_" #Name "_c", c, b, n, t, dest, tag, c, r);   \
        });                                                                                           \
  }
NEARFIELD_SEND(Send, Isend, SendMode::standard)
NEARFIELD_SEND(Bsend, Ibsend, SendMode::buffered)
NEARFIELD_SEND(Ssend, Issend, SendMode::synchronous)
NEARFIELD_SEND(Rsend, Irsend, SendMode::ready)

#define NEARFIELD_MAKE_SEND(Name, mode, persistent)                                                                    \
  int Name(const void* b, int n, MPI_Datatype t, int dest, int tag, MPI_Comm c, MPI_Request* r) {                      \
    return make_send(mode, persistent, "MPI_" #Name, b, n, t, dest, tag, c, r,                                         \
                     [&] { return host.Name(b, n, t, dest, tag, c, r); });                                             \
  }                                                                                                                    \
  int Name##_c(const void* b, MPI_Count n, MPI_Datatype t, int dest, int tag, MPI_Comm c, MPI_Request* r) {            \
    return make_send(mode, persistent, "MPI_" #Name "_c", b, n, t, dest, tag, c, r,                                    \
                     [&] { return large(host.Name##_c, host.Name, "MPI_" #Name "_c", c, b, n, t, dest, tag, c, r); }); \
  }
NEARFIELD_MAKE_SEND(Isend, SendMode::standard, false)
NEARFIELD_MAKE_SEND(Ibsend, SendMode::buffered, false)
NEARFIELD_MAKE_SEND(Issend, SendMode::synchronous, false)
NEARFIELD_MAKE_SEND(Irsend, SendMode::ready, false)
NEARFIELD_MAKE_SEND(Send_init, SendMode::standard, true)
NEARFIELD_MAKE_SEND(Bsend_init, SendMode::buffered, true)
NEARFIELD_MAKE_SEND(Ssend_init, SendMode::synchronous, true)
NEARFIELD_MAKE_SEND(Rsend_init, SendMode::ready, true)

}  // namespace nearfield::mpi
