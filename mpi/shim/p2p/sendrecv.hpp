// Calls that send and receive: by two messages under way at once, or as two requests if the host carries one of them.
#pragma once
#include "engine/base/function_ref.hpp"
#include "mpi/shim/p2p/receiving.hpp"
#include "mpi/shim/p2p/sending.hpp"
#include "mpi/shim/process/at_host.hpp"

namespace nearfield::mpi {

// A combined call; either partner may be MPI_PROC_NULL. `request`: a place for the request of a non-blocking call;
// nullptr: the call blocks. `copy`: the send buffer is replaced, so it is copied first. `host_call`: the host's
// function with the same arguments.
int send_and_receive(const char* function, const void* send, MPI_Count send_count, MPI_Datatype send_type, int dest,
                     int send_tag, void* recv, MPI_Count recv_count, MPI_Datatype recv_type, int source, int recv_tag,
                     MPI_Comm comm, MPI_Status* status, MPI_Request* request, bool copy, FunctionRef<int()> host_call);

// The last argument is the status of the receive, or the request of both.
template <class Last>
constexpr bool is_request = std::is_same_v<Last, MPI_Request*>;

// A function of its own: inlined into the short path it would make that store all arguments for the host's call. Then
// 256 bytes took 0.63 us instead of 0.56 (far CPUs, as docs/dev/decisions.md defines them; Zen 4).
template <Function number, class N, class Last>
[[gnu::noinline]] static int sendrecv_slowly(const void* send, N send_count, MPI_Datatype send_type, int dest,
                                             int send_tag, void* recv, N recv_count, MPI_Datatype recv_type, int source,
                                             int recv_tag, MPI_Comm comm, Last last) {
  MPI_Status* status = MPI_STATUS_IGNORE;
  MPI_Request* request = nullptr;
  if constexpr (is_request<Last>) request = last;
  else status = last;
  return send_and_receive(name_of(number), send, send_count, send_type, dest, send_tag, recv, recv_count, recv_type,
                          source, recv_tag, comm, status, request, false, [&]() -> int {
                            return at_host<number>(send, send_count, send_type, dest, send_tag, recv, recv_count,
                                                   recv_type, source, recv_tag, comm, last);
                          });
}

template <Function number, class N, class Last>
static int sendrecv(const void* send, N send_count, MPI_Datatype send_type, int dest, int send_tag, void* recv,
                    N recv_count, MPI_Datatype recv_type, int source, int recv_tag, MPI_Comm comm, Last last) {
  if constexpr (!is_request<Last>) {
    // If the send leaves at once it goes first: then only the receive is under way.
    const PlainMessage to = plain_message(send, send_count, send_type, dest, send_tag, comm);
    const PlainMessage from = plain_message(recv, recv_count, recv_type, source, recv_tag, comm);
    if (from.member >= 0 && send_short(to, send, send_tag)) [[likely]]
      return receive_short(from, recv, recv_tag, last) ? MPI_SUCCESS
                                                       : receive_plain(name_of(number), from, recv, recv_tag, last);
  }
  return sendrecv_slowly<number>(send, send_count, send_type, dest, send_tag, recv, recv_count, recv_type, source,
                                 recv_tag, comm, last);
}

template <Function number, class N, class Last>
static int sendrecv_replace(void* buffer, N count, MPI_Datatype type, int dest, int send_tag, int source, int recv_tag,
                            MPI_Comm comm, Last last) {
  MPI_Status* status = MPI_STATUS_IGNORE;
  MPI_Request* request = nullptr;
  if constexpr (is_request<Last>) request = last;
  else status = last;
  return send_and_receive(name_of(number), buffer, count, type, dest, send_tag, buffer, count, type, source, recv_tag,
                          comm, status, request, true, [&]() -> int {
                            return at_host<number>(buffer, count, type, dest, send_tag, source, recv_tag, comm, last);
                          });
}

}  // namespace nearfield::mpi
