// The collectives that reduce, one function for each class of parameters (mpi/functions.def). Type and operator must
// be the same on all ranks, so that unknown ones (derived types, user-defined operators) can go to the host.
#pragma once
#include "mpi/shim/collectives/carry.hpp"
#include "mpi/shim/functions.hpp"
#include "mpi/shim/handles/devices.hpp"
#include "mpi/shim/messages/point.hpp"

namespace nearfield::mpi {

using collectives::Call;
using collectives::Collective;

template <class HostCall>
int refuse(Communicator& c, MPI_Comm comm, const Call& call, const char* function, Reason reason, HostCall host_call) {
  if (checks(c) && reason != Reason::argument) {
    if (const int code = check_before_host(c, comm, call, function); code != MPI_SUCCESS) return code;
  }
  return to_host(call.collective, reason, host_call);
}

// Whether there is nothing to reduce, by a good type and operator: all return at once.
inline bool nothing(const Communicator& c, const Call& call) { return call.bytes == 0 && !checks(c) && !broken_off(c); }

// Buffers that a host would complain about; where it does not, equal addresses mean in place.
inline bool wrong_buffers(const void* send, const void* recv) {
  return !send || !recv || (host_rejects_aliases && send == recv);
}

// Operands and result may lie on a device. In place they are one buffer, which is longer than the result where that is
// a block of it.
template <class HostCall>
int carry_reduction(Communicator& c, MPI_Comm comm, Call call, std::size_t send_bytes, std::size_t recv_bytes,
                    const char* function, HostCall host_call) {
  if (!devices::possible()) [[likely]]
    return carry(c, comm, call, function, host_call);
  return guarded(comm, function, [&]() -> int {
    const bool in_place = call.send == call.recv;
    layout::Data send{static_cast<std::byte*>(const_cast<void*>(call.send)), send_bytes, {}};
    layout::Data recv{static_cast<std::byte*>(call.recv), recv_bytes, {}};
    const auto operands = devices::stage(send, true);
    const auto result = in_place ? nullptr : devices::stage(recv, false);
    call.send = send.address;
    call.recv = in_place ? send.address : recv.address;
    const int code = carry(c, comm, call, function, host_call);
    devices::Stage* const to = in_place ? operands.get() : result.get();
    if (code == MPI_SUCCESS && last_algorithm != by_host && to && recv_bytes && !to->store(recv_bytes))
      return raise_code(comm, MPI_ERR_BUFFER);
    return code;
  });
}

template <Collective collective, class HostCall, class N>
int rooted_reduction(const char* function, HostCall host_call, const void* send, void* recv, N count, MPI_Datatype type,
                     MPI_Op op, int root, MPI_Comm comm) {
  const Admission admitted = admit(comm);
  if (!admitted.communicator) return to_host(collective, admitted.reason, host_call);
  Communicator& c = *admitted.communicator;
  Call call{collective};
  call.root = root;
  if (root < 0 || root >= c.size) return to_host(collective, Reason::argument, host_call);
  if (const auto reason = describe_reduction(call, count, type, op))
    return refuse(c, comm, call, function, *reason, host_call);
  const bool is_root = c.rank == root, in_place = send == MPI_IN_PLACE;
  if (call.bytes && (is_root ? (in_place ? !recv : wrong_buffers(send, recv)) : in_place || !send))
    return to_host(collective, Reason::argument, host_call);
  if (nothing(c, call)) return MPI_SUCCESS;
  call.send = in_place ? recv : send;
  call.recv = recv;
  return carry_reduction(c, comm, call, call.bytes, is_root ? call.bytes : 0, function, host_call);
}

// Members that get nothing (the first of an exclusive scan) need no room for it.
template <Collective collective, class HostCall, class N>
int reduction(const char* function, HostCall host_call, const void* send, void* recv, N count, MPI_Datatype type,
              MPI_Op op, MPI_Comm comm) {
  constexpr const collectives::Operation& operation = collectives::operation(collective);
  const Admission admitted = admit(comm);
  if (!admitted.communicator) return to_host(collective, admitted.reason, host_call);
  Communicator& c = *admitted.communicator;
  Call call{collective};
  if (const auto reason = describe_reduction(call, count, type, op))
    return refuse(c, comm, call, function, *reason, host_call);
  const bool in_place = send == MPI_IN_PLACE, gets = operation.gets.has(c.rank, 0);
  if (call.bytes && (in_place ? !recv : gets ? wrong_buffers(send, recv) : !send))
    return to_host(collective, Reason::argument, host_call);
  if (nothing(c, call)) return MPI_SUCCESS;
  call.send = in_place ? recv : send;
  call.recv = recv;
  return carry_reduction(c, comm, call, operation.gives.each(c.size) * call.bytes, gets ? call.bytes : 0, function,
                         host_call);
}

}  // namespace nearfield::mpi
