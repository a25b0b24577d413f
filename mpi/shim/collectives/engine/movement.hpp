// The collectives that move data, one function for each class of parameters (mpi/functions.toml): arguments in, engine
// calls out. They serve the int and the large-count forms alike. Layouts are a rank's own business; what the engine
// gets is the length of the packed data, which MPI makes equal on all ranks (law 1 of docs/architecture.md).
#pragma once
#include "mpi/shim/collectives/engine/form.hpp"
#include "mpi/shim/handles/packing.hpp"
#include "mpi/shim/process/functions.hpp"

namespace nearfield::mpi {

using collectives::Amount;
using collectives::Call;
using collectives::Collective;

// What a rank reads (send) or writes (recv): elements [first, first + count) of its data, `displacement` bytes from
// the start of the packed data. The same data on both sides: in place.
struct Elements {
  Packed* data = nullptr;
  std::size_t first = 0, count = 0, displacement = 0;
};

// Both, for as long as an operation is under way.
class StagingElements final : public StagingBuffers {
 public:
  // Takes the data that they stand for. Throws std::bad_alloc.
  StagingElements(const Elements& send, const Elements& recv) : send_(send), recv_(recv) {
    if (send.data) send_.data = &first_.emplace(std::move(*send.data));
    if (recv.data) recv_.data = recv.data == send.data ? send_.data : &second_.emplace(std::move(*recv.data));
    for (auto* const data : {&first_, &second_})
      if (*data) (*data)->keep_type();
  }
  int fetch() override { return send_.data ? send_.data->pack(send_.first, send_.count) : MPI_SUCCESS; }
  int store() override { return recv_.data ? recv_.data->unpack(recv_.first, recv_.count) : MPI_SUCCESS; }

 private:
  std::optional<Packed> first_, second_;
  Elements send_, recv_;
};

// Runs a call whose buffers may be of derived types: packs, carries, unpacks. Or begins or plans it.
template <class When>
int carry_packed(Communicator& c, MPI_Comm comm, Call call, const char* function, Elements send, Elements recv,
                 const When& when) {
  bool dense = true;
  for (Packed* const data : {send.data, recv.data}) {
    if (!data) continue;
    if (data->error()) return when.at_host(call.collective, Reason::argument);
    if (!data->room() && data->bytes())
      return give_up(c, comm, function, "out of memory for a packed copy of the buffer");
    dense &= data->dense();
  }
  if (send.data) call.send = send.data->room() + send.displacement;
  if (recv.data) call.recv = recv.data->room() + recv.displacement;
  if constexpr (When::overlaps) {
    return begin(c, comm, call, function, dense ? nullptr : std::make_unique<StagingElements>(send, recv), when);
  } else {
    if (call.gaps) return carry(c, comm, call, function, when.host_call);
    if (send.data && send.data->pack(send.first, send.count) != MPI_SUCCESS)
      return give_up(c, comm, function, "the buffer cannot be packed");
    const int code = carry(c, comm, call, function, when.host_call);
    if (code != MPI_SUCCESS || !recv.data || *last_algorithm == by_host)
      return code;  // which has stored where it belongs
    return recv.data->unpack(recv.first, recv.count);
  }
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
template <class When, class N>
bool nothing(const When&, const Communicator& c, N count, MPI_Datatype type) {
  return !When::plans && count == 0 && !checks(c) && !broken_off(c) && find_type(type);
}

// The root gives a block, all others get it.
template <Collective collective, class When>
int one_buffer(const char* function, const When& when, void* buffer, MPI_Count count, MPI_Datatype type, int root,
               MPI_Comm comm) {
  const Admission admitted = when.admit(comm);
  if (!admitted.communicator) return when.at_host(collective, admitted.reason);
  Communicator& c = *admitted.communicator;
  return with_memory(c, comm, function, [&]() -> int {
    if (root < 0 || root >= c.size) return when.at_host(collective, Reason::argument);
    if (nothing(when, c, count, type)) return when.done(MPI_SUCCESS);
    Packed data(buffer, count, type, comm);
    Call call{collective, data.bytes()};
    call.root = root;
    const std::optional<layout::Data> gaps = When::overlaps || !c.team ? std::nullopt : data.with_gaps();
    if (gaps) call.gaps = &*gaps;
    const Elements side{&data, 0, std::size_t(count)};
    return c.rank == root ? carry_packed(c, comm, call, function, side, {}, when)
                          : carry_packed(c, comm, call, function, {}, side, when);
  });
}

// All give a block, or one for each member, and get one of each member.
template <Collective collective, class When>
int blocks(const char* function, const When& when, const void* send, MPI_Count send_count, MPI_Datatype send_type,
           void* recv, MPI_Count recv_count, MPI_Datatype recv_type, MPI_Comm comm) {
  constexpr bool gives_blocks = collectives::operation(collective).gives.amount == Amount::blocks;
  const Admission admitted = when.admit(comm);
  if (!admitted.communicator) return when.at_host(collective, admitted.reason);
  Communicator& c = *admitted.communicator;
  return with_memory(c, comm, function, [&]() -> int {
    if (nothing(when, c, recv_count, recv_type) && (send == MPI_IN_PLACE || nothing(when, c, send_count, send_type)))
      return when.done(MPI_SUCCESS);
    const std::size_t p = c.size, me = c.rank, each = std::size_t(recv_count), given = gives_blocks ? p : 1;
    Packed out(recv, all_of(recv_count, p), recv_type, comm);
    Call call{collective, out.bytes() / p};
    const Elements all{&out, 0, each * p};
    if (send == MPI_IN_PLACE) {
      const Elements own = gives_blocks ? all : Elements{&out, me * each, each, me * call.bytes};
      return carry_packed(c, comm, call, function, own, all, when);
    }
    Packed in(const_cast<void*>(send), all_of(send_count, given), send_type, comm);
    const void* const own = gives_blocks ? recv : offset_by(recv, me * call.bytes);
    if (in.error() || out.error() || in.bytes() != given * call.bytes ||
        aliased(send, send_count, send_type, own, recv_count, recv_type))
      return when.at_host(collective, Reason::argument);
    return carry_packed(c, comm, call, function, {&in, 0, std::size_t(send_count) * given}, all, when);
  });
}

// The root gets a block of each member, or gives one to each.
template <Collective collective, class When>
int rooted_blocks(const char* function, const When& when, const void* send, MPI_Count send_count,
                  MPI_Datatype send_type, void* recv, MPI_Count recv_count, MPI_Datatype recv_type, int root,
                  MPI_Comm comm) {
  constexpr bool gathers = collectives::operation(collective).gets.amount == Amount::blocks;
  const Admission admitted = when.admit(comm);
  if (!admitted.communicator) return when.at_host(collective, admitted.reason);
  Communicator& c = *admitted.communicator;
  // What every member has a block of, and what only the root has, of all of them.
  void* const one = gathers ? const_cast<void*>(send) : recv;
  void* const many = gathers ? recv : const_cast<void*>(send);
  const MPI_Count one_count = gathers ? send_count : recv_count, many_count = gathers ? recv_count : send_count;
  const MPI_Datatype one_type = gathers ? send_type : recv_type, many_type = gathers ? recv_type : send_type;
  return with_memory(c, comm, function, [&]() -> int {
    if (root < 0 || root >= c.size) return when.at_host(collective, Reason::argument);
    const bool in_place = one == MPI_IN_PLACE;
    if (c.rank != root) {
      if (in_place) return when.at_host(collective, Reason::argument);
      if (nothing(when, c, one_count, one_type)) return when.done(MPI_SUCCESS);
      Packed data(one, one_count, one_type, comm);
      Call call{collective, data.bytes()};
      call.root = root;
      const Elements side{&data, 0, std::size_t(one_count)};
      return carry_packed(c, comm, call, function, gathers ? side : Elements{}, gathers ? Elements{} : side, when);
    }
    if (nothing(when, c, many_count, many_type) && (in_place || nothing(when, c, one_count, one_type)))
      return when.done(MPI_SUCCESS);
    const std::size_t p = c.size, each = std::size_t(many_count);
    Packed blocks(many, all_of(many_count, p), many_type, comm);
    Call call{collective, blocks.bytes() / p};
    call.root = root;
    const Elements all{&blocks, 0, each * p};
    if (in_place) {
      // The root's own block stays where it is; nothing of a send buffer is written.
      const Elements own{&blocks, gathers ? root * each : 0, gathers ? each : 0, root * call.bytes};
      return carry_packed(c, comm, call, function, gathers ? own : all, gathers ? all : own, when);
    }
    Packed data(one, one_count, one_type, comm);
    const void* const own = offset_by(many, root * call.bytes);
    // Hosts find that out when data moves, and the others are in the call by then.
    if (!data.error() && !blocks.error() && data.bytes() != call.bytes && (is_being_created(c) || c.near_team()))
      return give_up(c, comm, function, "the root's own block is of another length than what it takes of others",
                     MPI_ERR_TRUNCATE);
    if (data.error() || blocks.error() || data.bytes() != call.bytes ||
        aliased(gathers ? one : own, send_count, send_type, gathers ? own : one, recv_count, recv_type))
      return when.at_host(collective, Reason::argument);
    const Elements side{&data, 0, std::size_t(one_count)};
    return carry_packed(c, comm, call, function, gathers ? side : all, gathers ? all : side, when);
  });
}

}  // namespace nearfield::mpi
