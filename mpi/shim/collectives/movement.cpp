// Barrier and the collectives that move data: arguments in, engine calls out. The templates serve the int and the
// large-count forms alike.
#include "mpi/shim/collectives/carry.hpp"
#include "mpi/shim/functions.hpp"
#include "mpi/shim/handles/packing.hpp"

namespace nearfield::mpi {
namespace {

using collectives::Call;
using collectives::Collective;

// What a rank reads (send) or writes (recv): elements [first, first + count) of its data, `displacement` bytes from
// the start of the packed data. The same data on both sides: in place.
struct Side {
  Packed* data = nullptr;
  std::size_t first = 0, count = 0, displacement = 0;
};

// Runs a call whose buffers may be of derived types: packs, carries, unpacks.
template <class HostCall>
int carry_packed(team::Team& team, MPI_Comm comm, Call call, const char* function, Side send, Side recv,
                 HostCall host_call) {
  for (Packed* const data : {send.data, recv.data}) {
    if (!data) continue;
    if (data->error()) return to_host(call.collective, Reason::argument, host_call);
    if (!data->room() && data->bytes())
      return give_up(team, comm, function, "out of memory for a packed copy of the buffer");
  }
  if (send.data) {
    if (send.data->pack(send.first, send.count) != MPI_SUCCESS)
      return give_up(team, comm, function, "the buffer cannot be packed");
    call.send = send.data->room() + send.displacement;
  }
  if (recv.data) call.recv = recv.data->room() + recv.displacement;
  const int code = carry(team, comm, call, function, host_call);
  if (code != MPI_SUCCESS || !recv.data) return code;
  return recv.data->unpack(recv.first, recv.count);
}

// A count for every rank, in 64 bits; -1 where those do not hold it either.
template <class N>
std::int64_t all_of(N count, std::size_t ranks) {
  std::int64_t all = 0;
  return __builtin_mul_overflow(count, ranks, &all) ? -1 : all;
}

// What MPICH rejects. The others do not know of it: only an error may follow.
template <class N>
bool aliased(const void* send, N send_count, MPI_Datatype send_type, const void* recv, N recv_count,
             MPI_Datatype recv_type) {
  return host_rejects_aliases && send == recv && send_count == recv_count && send_count > 0 && send_type == recv_type;
}

// Whether there is nothing to move, and nothing to find wrong with that either: all return at once, without looking at
// each other. Types that are not predefined are looked into by way of Packed.
template <class N>
bool nothing(const team::Team& team, N count, MPI_Datatype type) {
  return count == 0 && !team.plan().check && !team.broken_off && find_type(type);
}

template <class N, class HostCall>
int bcast(void* buffer, N count, MPI_Datatype type, int root, MPI_Comm comm, HostCall host_call) {
  const Admission admitted = admit(comm);
  if (!admitted.team) return to_host(Collective::bcast, admitted.reason, host_call);
  team::Team& team = *admitted.team;
  return with_memory(team, comm, "MPI_Bcast", [&]() -> int {
    if (root < 0 || root >= team.size()) return to_host(Collective::bcast, Reason::argument, host_call);
    if (nothing(team, count, type)) return MPI_SUCCESS;
    Packed data(buffer, count, type, comm);
    Call call{Collective::bcast, data.bytes()};
    call.root = root;
    const Side side{&data, 0, std::size_t(count)};
    return team.rank() == root ? carry_packed(team, comm, call, "MPI_Bcast", side, {}, host_call)
                               : carry_packed(team, comm, call, "MPI_Bcast", {}, side, host_call);
  });
}

template <class N, class HostCall>
int allgather(const void* send, N send_count, MPI_Datatype send_type, void* recv, N recv_count, MPI_Datatype recv_type,
              MPI_Comm comm, HostCall host_call) {
  const Admission admitted = admit(comm);
  if (!admitted.team) return to_host(Collective::allgather, admitted.reason, host_call);
  team::Team& team = *admitted.team;
  return with_memory(team, comm, "MPI_Allgather", [&]() -> int {
    if (nothing(team, recv_count, recv_type) && (send == MPI_IN_PLACE || nothing(team, send_count, send_type)))
      return MPI_SUCCESS;
    const std::size_t p = team.size(), me = team.rank(), each = std::size_t(recv_count);
    Packed out(recv, all_of(recv_count, p), recv_type, comm);
    Call call{Collective::allgather, out.bytes() / p};
    const Side all{&out, 0, each * p};
    if (send == MPI_IN_PLACE) {
      return carry_packed(team, comm, call, "MPI_Allgather", {&out, me * each, each, me * call.bytes}, all, host_call);
    }
    Packed in(const_cast<void*>(send), send_count, send_type, comm);
    const void* const own = offset_by(recv, me * call.bytes);
    if (in.error() || out.error() || in.bytes() != call.bytes ||
        aliased(send, send_count, send_type, own, recv_count, recv_type))
      return to_host(Collective::allgather, Reason::argument, host_call);
    return carry_packed(team, comm, call, "MPI_Allgather", {&in, 0, std::size_t(send_count)}, all, host_call);
  });
}

template <class N, class HostCall>
int alltoall(const void* send, N send_count, MPI_Datatype send_type, void* recv, N recv_count, MPI_Datatype recv_type,
             MPI_Comm comm, HostCall host_call) {
  const Admission admitted = admit(comm);
  if (!admitted.team) return to_host(Collective::alltoall, admitted.reason, host_call);
  team::Team& team = *admitted.team;
  return with_memory(team, comm, "MPI_Alltoall", [&]() -> int {
    if (nothing(team, recv_count, recv_type) && (send == MPI_IN_PLACE || nothing(team, send_count, send_type)))
      return MPI_SUCCESS;
    const std::size_t p = team.size();
    Packed out(recv, all_of(recv_count, p), recv_type, comm);
    Call call{Collective::alltoall, out.bytes() / p};
    const Side all{&out, 0, std::size_t(recv_count) * p};
    if (send == MPI_IN_PLACE) return carry_packed(team, comm, call, "MPI_Alltoall", all, all, host_call);
    Packed in(const_cast<void*>(send), all_of(send_count, p), send_type, comm);
    if (in.error() || out.error() || in.bytes() != out.bytes() ||
        aliased(send, send_count, send_type, recv, recv_count, recv_type))
      return to_host(Collective::alltoall, Reason::argument, host_call);
    return carry_packed(team, comm, call, "MPI_Alltoall", {&in, 0, std::size_t(send_count) * p}, all, host_call);
  });
}

template <class N, class HostCall>
int gather(const void* send, N send_count, MPI_Datatype send_type, void* recv, N recv_count, MPI_Datatype recv_type,
           int root, MPI_Comm comm, HostCall host_call) {
  const Admission admitted = admit(comm);
  if (!admitted.team) return to_host(Collective::gather, admitted.reason, host_call);
  team::Team& team = *admitted.team;
  return with_memory(team, comm, "MPI_Gather", [&]() -> int {
    if (root < 0 || root >= team.size()) return to_host(Collective::gather, Reason::argument, host_call);
    const std::size_t p = team.size(), each = std::size_t(recv_count);
    if (team.rank() != root) {
      if (send == MPI_IN_PLACE) return to_host(Collective::gather, Reason::argument, host_call);
      if (nothing(team, send_count, send_type)) return MPI_SUCCESS;
      Packed in(const_cast<void*>(send), send_count, send_type, comm);
      Call call{Collective::gather, in.bytes()};
      call.root = root;
      return carry_packed(team, comm, call, "MPI_Gather", {&in, 0, std::size_t(send_count)}, {}, host_call);
    }
    if (nothing(team, recv_count, recv_type) && (send == MPI_IN_PLACE || nothing(team, send_count, send_type)))
      return MPI_SUCCESS;
    Packed out(recv, all_of(recv_count, p), recv_type, comm);
    Call call{Collective::gather, out.bytes() / p};
    call.root = root;
    const Side all{&out, 0, each * p};
    if (send == MPI_IN_PLACE) {
      return carry_packed(team, comm, call, "MPI_Gather", {&out, root * each, each, root * call.bytes}, all, host_call);
    }
    Packed in(const_cast<void*>(send), send_count, send_type, comm);
    const void* const own = offset_by(recv, root * call.bytes);
    if (in.error() || out.error() || in.bytes() != call.bytes ||
        aliased(send, send_count, send_type, own, recv_count, recv_type))
      return to_host(Collective::gather, Reason::argument, host_call);
    return carry_packed(team, comm, call, "MPI_Gather", {&in, 0, std::size_t(send_count)}, all, host_call);
  });
}

template <class N, class HostCall>
int scatter(const void* send, N send_count, MPI_Datatype send_type, void* recv, N recv_count, MPI_Datatype recv_type,
            int root, MPI_Comm comm, HostCall host_call) {
  const Admission admitted = admit(comm);
  if (!admitted.team) return to_host(Collective::scatter, admitted.reason, host_call);
  team::Team& team = *admitted.team;
  return with_memory(team, comm, "MPI_Scatter", [&]() -> int {
    if (root < 0 || root >= team.size()) return to_host(Collective::scatter, Reason::argument, host_call);
    const std::size_t p = team.size(), each = std::size_t(send_count);
    if (team.rank() != root) {
      if (recv == MPI_IN_PLACE) return to_host(Collective::scatter, Reason::argument, host_call);
      if (nothing(team, recv_count, recv_type)) return MPI_SUCCESS;
      Packed out(recv, recv_count, recv_type, comm);
      Call call{Collective::scatter, out.bytes()};
      call.root = root;
      return carry_packed(team, comm, call, "MPI_Scatter", {}, {&out, 0, std::size_t(recv_count)}, host_call);
    }
    if (nothing(team, send_count, send_type) && (recv == MPI_IN_PLACE || nothing(team, recv_count, recv_type)))
      return MPI_SUCCESS;
    Packed in(const_cast<void*>(send), all_of(send_count, p), send_type, comm);
    Call call{Collective::scatter, in.bytes() / p};
    call.root = root;
    const Side all{&in, 0, each * p};
    // In place the root's own block stays where it is; nothing of the send buffer is written.
    if (recv == MPI_IN_PLACE)
      return carry_packed(team, comm, call, "MPI_Scatter", all, {&in, 0, 0, root * call.bytes}, host_call);
    Packed out(recv, recv_count, recv_type, comm);
    const void* const own = offset_by(send, root * call.bytes);
    if (in.error() || out.error() || out.bytes() != call.bytes ||
        aliased(own, send_count, send_type, recv, recv_count, recv_type))
      return to_host(Collective::scatter, Reason::argument, host_call);
    return carry_packed(team, comm, call, "MPI_Scatter", all, {&out, 0, std::size_t(recv_count)}, host_call);
  });
}

}  // namespace

int Barrier(MPI_Comm comm) {
  auto host_call = [&] { return host.Barrier(comm); };
  const Admission admitted = admit(comm);
  if (!admitted.team) return to_host(Collective::barrier, admitted.reason, host_call);
  return carry(*admitted.team, comm, Call{Collective::barrier}, "MPI_Barrier", host_call);
}

int Bcast(void* b, int n, MPI_Datatype t, int root, MPI_Comm c) {
  return bcast(b, n, t, root, c, [&] { return host.Bcast(b, n, t, root, c); });
}
int Bcast_c(void* b, MPI_Count n, MPI_Datatype t, int root, MPI_Comm c) {
  return bcast(b, n, t, root, c, [&] { return large(host.Bcast_c, host.Bcast, "MPI_Bcast_c", c, b, n, t, root, c); });
}

#define NEARFIELD_EXCHANGE(Name, implementation)                                                                   \
  int Name(const void* s, int ns, MPI_Datatype ts, void* r, int nr, MPI_Datatype tr, MPI_Comm c) {                 \
    return implementation(s, ns, ts, r, nr, tr, c, [&] { return host.Name(s, ns, ts, r, nr, tr, c); });            \
  }                                                                                                                \
  int Name##_c(const void* s, MPI_Count ns, MPI_Datatype ts, void* r, MPI_Count nr, MPI_Datatype tr, MPI_Comm c) { \
    return implementation(s, ns, ts, r, nr, tr, c, [&] {                                                           \
      return large(host.Name##_c, host.Name, "MPI_" #Name "_c", c, s, ns, ts, r, nr, tr, c);                       \
    });                                                                                                            \
  }
NEARFIELD_EXCHANGE(Allgather, allgather)
NEARFIELD_EXCHANGE(Alltoall, alltoall)

#define NEARFIELD_ROOTED(Name, implementation)                                                                      \
  int Name(const void* s, int ns, MPI_Datatype ts, void* r, int nr, MPI_Datatype tr, int root, MPI_Comm c) {        \
    return implementation(s, ns, ts, r, nr, tr, root, c, [&] { return host.Name(s, ns, ts, r, nr, tr, root, c); }); \
  }                                                                                                                 \
  int Name##_c(const void* s, MPI_Count ns, MPI_Datatype ts, void* r, MPI_Count nr, MPI_Datatype tr, int root,      \
               MPI_Comm c) {                                                                                        \
    return implementation(s, ns, ts, r, nr, tr, root, c, [&] {                                                      \
      return large(host.Name##_c, host.Name, "MPI_" #Name "_c", c, s, ns, ts, r, nr, tr, root, c);                  \
    });                                                                                                             \
  }
NEARFIELD_ROOTED(Gather, gather)
NEARFIELD_ROOTED(Scatter, scatter)

}  // namespace nearfield::mpi
