#include "mpi/shim/p2p/sending.hpp"

#include "engine/base/out_of_memory.hpp"

namespace nearfield::mpi {
namespace {

// Sends by the host: while any-source receives are under way by a request, so that the wait can progress both sides.
int send_by_host(FunctionRef<int()> host_call, FunctionRef<int(MPI_Request*)> host_start) {
  if (!any_source_requests.load(std::memory_order_relaxed)) [[likely]]
    return blocking_host(host_call);
  MPI_Request request;
  const int code = call_host([&] { return host_start(&request); });
  return code == MPI_SUCCESS ? Wait(&request, MPI_STATUS_IGNORE) : code;
}

}  // namespace

int send_anything(const char* function, SendMode mode, const void* buffer, MPI_Count count, MPI_Datatype type, int dest,
                  int tag, MPI_Comm comm, FunctionRef<int()> host_call, FunctionRef<int(MPI_Request*)> host_start) try {
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
  return raise(comm, function, "out of memory", MPI_ERR_NO_MEM);
}

int make_any_send(const char* function, SendMode mode, bool persistent, const void* buffer, MPI_Count count,
                  MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request* request,
                  FunctionRef<int()> host_call) try {
  Communicator* const c = channel(comm);
  if (!c || !good_destination(*c, dest, tag) || !request) return making_host(persistent, request, host_call);
  TypedData typed(buffer, count, type);
  if (!typed.good) return making_host(persistent, request, host_call);
  return guarded(comm, function, [&]() -> int {
    const bool proc_null = dest == MPI_PROC_NULL, early = !persistent && leaves_early(mode);
    auto packed = proc_null ? nullptr : packed_copy(typed, buffer, count, type, comm, true);
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
  return raise(comm, function, "out of memory", MPI_ERR_NO_MEM);
}

}  // namespace nearfield::mpi
