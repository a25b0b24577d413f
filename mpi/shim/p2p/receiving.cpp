#include "mpi/shim/p2p/receiving.hpp"

#include "engine/base/out_of_memory.hpp"
#include "mpi/shim/p2p/any_source.hpp"
#include "mpi/shim/p2p/landing.hpp"

namespace nearfield::mpi {
namespace {

// On some hosts it is an error if a message ends within an element of a type with gaps. Here it is one only if the
// message ends within the first element: hosts do not tell where in a later element it ends.
int judge(const messages::Request& request, MPI_Datatype type) {
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
int receive_apart(TypedData& typed, const Communicator& c, void* buffer, MPI_Count count, MPI_Datatype type, int source,
                  int tag, MPI_Status* status) {
  const auto packed = packed_copy(typed, buffer, count, type, c.comm);
  messages::Request request;
  receive_and_wait(request, c, typed.data, source, tag, status);
  return report(c.comm, packed ? land(*packed, request) : outcome(request));
}

// Receives by the host: while any-source receives are under way by a request, so that the wait can progress both sides.
int receive_by_host(const Communicator* c, int tag, MPI_Status* status, FunctionRef<int()> host_call,
                    FunctionRef<int(MPI_Request*)> host_start) {
  if (!any_source_requests.load(std::memory_order_relaxed)) [[likely]]
    return blocking_host(host_call);
  before_host_receives(c, tag);
  MPI_Request request;
  const int code = call_host([&] { return host_start(&request); });
  return code == MPI_SUCCESS ? Wait(&request, status) : code;
}

}  // namespace

int receive_anything(const char* function, const char* start, void* buffer, MPI_Count count, MPI_Datatype type,
                     int source, int tag, MPI_Comm comm, MPI_Status* status, FunctionRef<int()> host_call,
                     FunctionRef<int(MPI_Request*)> host_start) try {
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
      const int code = make_any_receive(start, false, buffer, count, type, source, tag, comm, &request,
                                        [&]() -> int { return host_start(&request); });
      return code == MPI_SUCCESS ? Wait(&request, status) : code;
    }
    if (typed.packs() || devices::possible()) [[unlikely]]
      return receive_apart(typed, *c, buffer, count, type, source, tag, status);
    messages::Request request;
    receive_and_wait(request, *c, typed.data, source, tag, status);
    return report(comm, judge(request, type));
  });
} catch (const OutOfMemory&) {
  return raise(comm, function, "out of memory", MPI_ERR_NO_MEM);
}

int make_any_receive(const char* function, bool persistent, void* buffer, MPI_Count count, MPI_Datatype type,
                     int source, int tag, MPI_Comm comm, MPI_Request* request, FunctionRef<int()> host_call) try {
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
      receive = std::make_unique<AnySourceRequest>(std::move(near), buffer, count, type, tag, *c);
    }
    return report(comm, make_request(comm, std::move(receive), persistent, request));
  });
} catch (const OutOfMemory&) {
  return raise(comm, function, "out of memory", MPI_ERR_NO_MEM);
}

}  // namespace nearfield::mpi
