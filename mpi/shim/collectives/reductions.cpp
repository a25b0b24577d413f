// Reduce, Allreduce and Reduce_scatter_block. Type and operator must be the same on all ranks, so that unknown ones
// (derived types, user-defined operators) can go to the host.
#include "mpi/shim/collectives/carry.hpp"
#include "mpi/shim/functions.hpp"
#include "mpi/shim/handles/devices.hpp"
#include "mpi/shim/messages/point.hpp"

namespace nearfield::mpi {
namespace {

using collectives::Call;
using collectives::Collective;

// Fills type, operator and length; the reason why not otherwise.
template <class N>
std::optional<Reason> describe(Call& call, N count, MPI_Datatype type, MPI_Op op) {
  if (count < 0) return Reason::argument;
  const TypeInfo* const info = find_type(type);
  if (!info) return Reason::type;
  const auto known = find_op(op);
  if (!known) return Reason::op;
  using reducing::Op;
  const bool logical = *known == Op::land || *known == Op::lor || *known == Op::lxor;
  if (logical && info->fortran_integer) return Reason::type;
  call.fold = reducing::fold(*known, info->type);
  if (!call.fold) return Reason::type;
  call.type = info->type;
  call.op = *known;
  call.count = std::size_t(count);
  call.bytes = call.count * reducing::size_of(info->type);
  return std::nullopt;
}

template <class HostCall>
int refuse(team::Team& team, MPI_Comm comm, const Call& call, const char* function, Reason reason, HostCall host_call) {
  if (team.plan().check && reason != Reason::argument) {
    if (const int code = check_before_host(team, comm, call, function); code != MPI_SUCCESS) return code;
  }
  return to_host(call.collective, reason, host_call);
}

// Whether there is nothing to reduce, by a good type and operator: all return at once.
bool nothing(const team::Team& team, const Call& call) {
  return call.bytes == 0 && !team.plan().check && !team.broken_off;
}

// Buffers that a host would complain about; where it does not, equal addresses mean in place.
bool wrong_buffers(const void* send, const void* recv) {
  return !send || !recv || (host_rejects_aliases && send == recv);
}

// Operands and result may lie on a device. In place they are one buffer, which is longer than the result where that is
// a block of it.
template <class HostCall>
int carry_staged(team::Team& team, MPI_Comm comm, Call call, std::size_t send_bytes, std::size_t recv_bytes,
                 const char* function, HostCall host_call) {
  if (!devices::possible()) [[likely]]
    return carry(team, comm, call, function, host_call);
  return guarded(comm, function, [&]() -> int {
    const bool in_place = call.send == call.recv;
    layout::Data send{static_cast<std::byte*>(const_cast<void*>(call.send)), send_bytes, {}};
    layout::Data recv{static_cast<std::byte*>(call.recv), recv_bytes, {}};
    const auto operands = devices::stage(send, true);
    const auto result = in_place ? nullptr : devices::stage(recv, false);
    call.send = send.address;
    call.recv = in_place ? send.address : recv.address;
    const int code = carry(team, comm, call, function, host_call);
    devices::Stage* const to = in_place ? operands.get() : result.get();
    if (code == MPI_SUCCESS && to && !to->store(recv_bytes)) return raise_code(comm, MPI_ERR_BUFFER);
    return code;
  });
}

template <class N, class HostCall>
int reduce(const void* send, void* recv, N count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
           HostCall host_call) {
  const Admission admitted = admit(comm);
  if (!admitted.team) return to_host(Collective::reduce, admitted.reason, host_call);
  team::Team& team = *admitted.team;
  Call call{Collective::reduce};
  call.root = root;
  if (root < 0 || root >= team.size()) return to_host(Collective::reduce, Reason::argument, host_call);
  if (const auto reason = describe(call, count, type, op))
    return refuse(team, comm, call, "MPI_Reduce", *reason, host_call);
  const bool is_root = team.rank() == root, in_place = send == MPI_IN_PLACE;
  if (call.bytes && (is_root ? (in_place ? !recv : wrong_buffers(send, recv)) : in_place || !send))
    return to_host(Collective::reduce, Reason::argument, host_call);
  if (nothing(team, call)) return MPI_SUCCESS;
  call.send = in_place ? recv : send;
  call.recv = recv;
  return carry_staged(team, comm, call, call.bytes, is_root ? call.bytes : 0, "MPI_Reduce", host_call);
}

template <class N, class HostCall>
int reduce_all(Collective collective, const char* function, const void* send, void* recv, N count, MPI_Datatype type,
               MPI_Op op, MPI_Comm comm, HostCall host_call) {
  const Admission admitted = admit(comm);
  if (!admitted.team) return to_host(collective, admitted.reason, host_call);
  team::Team& team = *admitted.team;
  Call call{collective};
  if (const auto reason = describe(call, count, type, op))
    return refuse(team, comm, call, function, *reason, host_call);
  const bool in_place = send == MPI_IN_PLACE;
  if (call.bytes && (in_place ? !recv : wrong_buffers(send, recv)))
    return to_host(collective, Reason::argument, host_call);
  if (nothing(team, call)) return MPI_SUCCESS;
  call.send = in_place ? recv : send;
  call.recv = recv;
  const std::size_t blocks = collective == Collective::reduce_scatter_block ? std::size_t(team.size()) : 1;
  return carry_staged(team, comm, call, blocks * call.bytes, call.bytes, function, host_call);
}

}  // namespace

std::optional<Reason> describe_reduction(Call& call, MPI_Count count, MPI_Datatype type, MPI_Op op) {
  return describe(call, count, type, op);
}

int check_before_host(team::Team& team, MPI_Comm comm, const Call& call, const char* function) {
  try {
    collectives::compare_calls(team.track(), call);
  } catch (const team::Broken& broken) {
    return raise(comm, function, broken);
  }
  return MPI_SUCCESS;
}

int Reduce(const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm c) {
  return reduce(s, r, n, t, op, root, c, [&] { return host.Reduce(s, r, n, t, op, root, c); });
}
int Reduce_c(const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm c) {
  return reduce(s, r, n, t, op, root, c,
                [&] { return large(host.Reduce_c, host.Reduce, "MPI_Reduce_c", c, s, r, n, t, op, root, c); });
}
int Allreduce(const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c) {
  return reduce_all(Collective::allreduce, "MPI_Allreduce", s, r, n, t, op, c,
                    [&] { return host.Allreduce(s, r, n, t, op, c); });
}
int Allreduce_c(const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c) {
  return reduce_all(Collective::allreduce, "MPI_Allreduce", s, r, n, t, op, c,
                    [&] { return large(host.Allreduce_c, host.Allreduce, "MPI_Allreduce_c", c, s, r, n, t, op, c); });
}
int Reduce_scatter_block(const void* s, void* r, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c) {
  return reduce_all(Collective::reduce_scatter_block, "MPI_Reduce_scatter_block", s, r, n, t, op, c,
                    [&] { return host.Reduce_scatter_block(s, r, n, t, op, c); });
}
int Reduce_scatter_block_c(const void* s, void* r, MPI_Count n, MPI_Datatype t, MPI_Op op, MPI_Comm c) {
  return reduce_all(Collective::reduce_scatter_block, "MPI_Reduce_scatter_block", s, r, n, t, op, c, [&] {
    return large(host.Reduce_scatter_block_c, host.Reduce_scatter_block, "MPI_Reduce_scatter_block_c", c, s, r, n, t,
                 op, c);
  });
}

}  // namespace nearfield::mpi
