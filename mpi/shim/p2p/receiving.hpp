// Receives. Where a communicator spans nodes, the message of a receive from any source may be ours or the host's
// (any_source.hpp).
#pragma once
#include "engine/base/function_ref.hpp"
#include "mpi/shim/p2p/activity.hpp"
#include "mpi/shim/p2p/short.hpp"
#include "mpi/shim/process/at_host.hpp"

namespace nearfield::mpi {

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

// A receive of any kind. `host_call`: the host's function with the same arguments. `start`: the name of its function
// that makes a request of such a receive; `host_start` calls that.
int receive_anything(const char* function, const char* start, void* buffer, MPI_Count count, MPI_Datatype type,
                     int source, int tag, MPI_Comm comm, MPI_Status* status, FunctionRef<int()> host_call,
                     FunctionRef<int(MPI_Request*)> host_start);

template <Function number, Function start, class N>
[[gnu::noinline]] static int receive_slowly(void* buffer, N count, MPI_Datatype type, int source, int tag,
                                            MPI_Comm comm, MPI_Status* status) {
  return receive_anything(
      name_of(number), name_of(start), buffer, count, type, source, tag, comm, status,
      [&]() -> int { return at_host<number>(buffer, count, type, source, tag, comm, status); },
      [&](MPI_Request* made) -> int { return at_host<start>(buffer, count, type, source, tag, comm, made); });
}

template <Function number, Function start, class N>
static int receive(void* buffer, N count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status) {
  const PlainMessage from = plain_message(buffer, count, type, source, tag, comm);
  if (receive_short(from, buffer, tag, status)) [[likely]]
    return MPI_SUCCESS;
  if (from.member >= 0) return receive_plain(name_of(number), from, buffer, tag, status);
  return receive_slowly<number, start>(buffer, count, type, source, tag, comm, status);
}

// MPI_Irecv and MPI_Recv_init; `persistent`: MPI_Start will start it.
int make_any_receive(const char* function, bool persistent, void* buffer, MPI_Count count, MPI_Datatype type,
                     int source, int tag, MPI_Comm comm, MPI_Request* request, FunctionRef<int()> host_call);

template <Function number, bool persistent, class N>
[[gnu::noinline]] static int make_receive_slowly(void* buffer, N count, MPI_Datatype type, int source, int tag,
                                                 MPI_Comm comm, MPI_Request* request) {
  return make_any_receive(name_of(number), persistent, buffer, count, type, source, tag, comm, request,
                          [&]() -> int { return at_host<number>(buffer, count, type, source, tag, comm, request); });
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
  return make_receive_slowly<number, persistent>(buffer, count, type, source, tag, comm, request);
}

}  // namespace nearfield::mpi
