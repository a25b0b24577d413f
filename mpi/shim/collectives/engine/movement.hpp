// The collectives that move data, one function for each class of parameters (mpi/functions.toml). Each converts the
// arguments of an MPI call, int or large-count, to a call of the engine. Layouts may differ among ranks; the engine
// gets the length of the packed data, which MPI makes equal on all (law 1 of docs/dev/architecture.md).
#pragma once
#include <cstring>

#include "mpi/shim/collectives/engine/form.hpp"
#include "mpi/shim/handles/packing.hpp"
#include "mpi/shim/process/functions.hpp"

namespace nearfield::mpi {

using collectives::Amount;
using collectives::Call;
using collectives::Collective;

// What a rank reads (send) or writes (recv): elements [first, first + count) of its data, which begin `displacement`
// bytes after the start of the packed data. If both sides have the same data, the call is in place.
struct Elements {
  Packed* data = nullptr;
  std::size_t first = 0, count = 0, displacement = 0;
};

// Both sides of a call, packed where their types are derived.
class ElementBuffers final : public StagingBuffers {
 public:
  ElementBuffers(const Elements& send, const Elements& recv) : send_(send), recv_(recv) {}
  int fetch() override { return send_.data ? send_.data->pack(send_.first, send_.count) : MPI_SUCCESS; }
  int store() override {
    const int code = recv_.data ? recv_.data->unpack(recv_.first, recv_.count) : MPI_SUCCESS;
    return code == MPI_SUCCESS ? code : raised_by_host(code);
  }
  // Returns buffers for a task, which take over the Packed data; nullptr if all are dense. Throws std::bad_alloc.
  std::unique_ptr<StagingBuffers> keep() const {
    if ((!send_.data || send_.data->dense()) && (!recv_.data || recv_.data->dense())) return nullptr;
    auto kept = std::make_unique<ElementBuffers>(send_, recv_);
    if (send_.data) kept->send_.data = &kept->first_.emplace(std::move(*send_.data));
    if (recv_.data == send_.data) kept->recv_.data = kept->send_.data;
    else if (recv_.data) kept->recv_.data = &kept->second_.emplace(std::move(*recv_.data));
    for (auto* const data : {&kept->first_, &kept->second_})
      if (*data) (*data)->keep_type();
    return kept;
  }

 private:
  Elements send_, recv_;
  std::optional<Packed> first_, second_;
};

// Runs a call whose buffers may be of derived types.
template <class When>
int carry_packed(Communicator& c, Call call, const char* function, Elements send, Elements recv, const When& when) {
  for (Packed* const data : {send.data, recv.data}) {
    if (!data) continue;
    if (data->error()) return when.at_host(call.collective, Reason::argument);
    if (!data->room() && data->bytes()) return give_up(c, function, "out of memory for a packed copy of the buffer");
  }
  if (send.data) call.send = send.data->room() + send.displacement;
  if (recv.data) call.recv = recv.data->room() + recv.displacement;
  if constexpr (!When::overlaps)
    if (call.gaps) return carry(c, call, function, when.host_call);
  return post(c, call, function, ElementBuffers(send, recv), when);
}

// Returns `count` times `ranks`; -1 if 64 bits do not hold it.
template <class N>
std::int64_t all_of(N count, std::size_t ranks) {
  std::int64_t all = 0;
  return __builtin_mul_overflow(count, ranks, &all) ? -1 : all;
}

// Returns whether MPICH rejects the buffers. The other ranks do not know of it, so only an error may follow.
template <class N>
bool aliased(const void* send, N send_count, MPI_Datatype send_type, const void* recv, N recv_count,
             MPI_Datatype recv_type) {
  return host_rejects_aliases && send == recv && send_count == recv_count && send_count > 0 && send_type == recv_type;
}

// Returns whether the call moves nothing and needs no check, so that all ranks return at once without communication.
// False for types that are not predefined: Packed then checks them.
template <class When, class N>
bool nothing(const When&, const Communicator& c, N count, MPI_Datatype type) {
  return !When::plans && count == 0 && !is_being_created(c) && !checks(c) && !broken_off(c) && find_type(type);
}

// Serves a call in which this rank gives blocks of another length than it takes. Hosts notice that while data are
// moved, when the other ranks are in the call already. So the others get as much as fits, and this rank gets an error
// if it gives more. pre: the blocks that it takes are not empty, and the call is not persistent.
template <class When>
int carry_unequal(Communicator& c, const Call& call, const char* function, Packed& in, std::size_t given,
                  const Elements& out, const When& when) {
  constexpr const char* why = "a block that this rank sends has another length than those that it receives";
  const bool truncates = in.bytes() > given * call.bytes;
  if (const int code = in.fit(given, call.bytes); code != MPI_SUCCESS)
    return give_up(c, function, "the buffer cannot be packed", code);
  const int code = carry_packed(c, call, function, {&in, 0, in.bytes()}, out, when);
  return code == MPI_SUCCESS && truncates ? raise(c.comm, function, why, MPI_ERR_TRUNCATE) : code;
}

template <Collective collective, class When>
int barrier(const char* function, const When& when, Communicator& c, MPI_Comm) {
  if constexpr (When::overlaps) return post_task(c, Call{collective}, function, nullptr, when, Call{collective});
  else return carry(c, Call{collective}, function, when.host_call);
}

// The root gives a block, all others get it.
template <Collective collective, class When>
int one_buffer(const char* function, const When& when, Communicator& c, void* buffer, MPI_Count count,
               MPI_Datatype type, int root, MPI_Comm comm) {
  return with_memory(c, function, [&]() -> int {
    if (root < 0 || root >= c.size) return when.at_host(collective, Reason::argument);
    if (nothing(when, c, count, type)) return when.done(MPI_SUCCESS);
    Packed data(buffer, count, type, comm);
    Call call{collective, data.bytes()};
    call.root = root;
    const std::optional<layout::Data> gaps = When::overlaps || !c.team ? std::nullopt : data.with_gaps();
    if (gaps) call.gaps = &*gaps;
    const Elements side{&data, 0, std::size_t(count)};
    return c.rank == root ? carry_packed(c, call, function, side, {}, when)
                          : carry_packed(c, call, function, {}, side, when);
  });
}

// All give a block, or one for each member, and get one of each member.
template <Collective collective, class When>
int blocks(const char* function, const When& when, Communicator& c, const void* send, MPI_Count send_count,
           MPI_Datatype send_type, void* recv, MPI_Count recv_count, MPI_Datatype recv_type, MPI_Comm comm) {
  constexpr bool gives_blocks = collectives::operation(collective).gives.amount == Amount::blocks;
  return with_memory(c, function, [&]() -> int {
    if (nothing(when, c, recv_count, recv_type) && (send == MPI_IN_PLACE || nothing(when, c, send_count, send_type)))
      return when.done(MPI_SUCCESS);
    const std::size_t p = c.size, me = c.rank, each = std::size_t(recv_count), given = gives_blocks ? p : 1;
    Packed out(recv, all_of(recv_count, p), recv_type, comm);
    Call call{collective, out.bytes() / p};
    const Elements all{&out, 0, each * p};
    if (send == MPI_IN_PLACE) {
      const Elements own = gives_blocks ? all : Elements{&out, me * each, each, me * call.bytes};
      return carry_packed(c, call, function, own, all, when);
    }
    Packed in(const_cast<void*>(send), all_of(send_count, given), send_type, comm);
    const void* const own = gives_blocks ? recv : offset_by(recv, me * call.bytes);
    if (in.error() || out.error() || aliased(send, send_count, send_type, own, recv_count, recv_type))
      return when.at_host(collective, Reason::argument);
    if (in.bytes() != given * call.bytes) [[unlikely]] {
      if (When::plans || call.bytes == 0) return when.at_host(collective, Reason::argument);
      return carry_unequal(c, call, function, in, given, all, when);
    }
    return carry_packed(c, call, function, {&in, 0, std::size_t(send_count) * given}, all, when);
  });
}

// The same for the root of a scatter that gives blocks of another length than it takes: it takes as much as fits.
template <class When>
int scatter_unequal(Communicator& c, const Call& call, const char* function, const Elements& all, Packed& own,
                    const When& when) {
  constexpr const char* why = "the root's own block has another length than those that it sends";
  const std::size_t each = all.count / std::size_t(c.size), fits = std::min(own.bytes(), call.bytes);
  const memory::Temporary block(call.bytes);
  if (!block.data() || (own.bytes() && !own.room())) return give_up(c, function, "out of memory");
  int code = all.data->load(block.data(), std::size_t(c.rank) * each, each);
  if (code == MPI_SUCCESS && own.bytes()) code = own.pack_all();
  if (code != MPI_SUCCESS) return give_up(c, function, "the buffer cannot be packed", code);
  if (fits) std::memcpy(own.room(), block.data(), fits);
  if (code = own.unpack_bytes(fits); code == MPI_SUCCESS)
    code = carry_packed(c, call, function, all, {all.data, 0, 0, std::size_t(c.rank) * call.bytes}, when);
  return code == MPI_SUCCESS && own.bytes() < call.bytes ? raise(c.comm, function, why, MPI_ERR_TRUNCATE) : code;
}

// The root gets a block of each member, or gives one to each.
template <Collective collective, class When>
int rooted_blocks(const char* function, const When& when, Communicator& c, const void* send, MPI_Count send_count,
                  MPI_Datatype send_type, void* recv, MPI_Count recv_count, MPI_Datatype recv_type, int root,
                  MPI_Comm comm) {
  constexpr bool gathers = collectives::operation(collective).gets.amount == Amount::blocks;
  // The buffer of one block, and the root's, with a block of each member.
  void* const one = gathers ? const_cast<void*>(send) : recv;
  void* const many = gathers ? recv : const_cast<void*>(send);
  const MPI_Count one_count = gathers ? send_count : recv_count, many_count = gathers ? recv_count : send_count;
  const MPI_Datatype one_type = gathers ? send_type : recv_type, many_type = gathers ? recv_type : send_type;
  return with_memory(c, function, [&]() -> int {
    if (root < 0 || root >= c.size) return when.at_host(collective, Reason::argument);
    const bool in_place = one == MPI_IN_PLACE;
    if (c.rank != root) {
      if (in_place) return when.at_host(collective, Reason::argument);
      if (nothing(when, c, one_count, one_type)) return when.done(MPI_SUCCESS);
      Packed data(one, one_count, one_type, comm);
      Call call{collective, data.bytes()};
      call.root = root;
      const Elements side{&data, 0, std::size_t(one_count)};
      return carry_packed(c, call, function, gathers ? side : Elements{}, gathers ? Elements{} : side, when);
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
      return carry_packed(c, call, function, gathers ? own : all, gathers ? all : own, when);
    }
    Packed data(one, one_count, one_type, comm);
    const void* const own = offset_by(many, root * call.bytes);
    if (data.error() || blocks.error() ||
        aliased(gathers ? one : own, send_count, send_type, gathers ? own : one, recv_count, recv_type))
      return when.at_host(collective, Reason::argument);
    if (data.bytes() != call.bytes) [[unlikely]] {
      if (When::plans || call.bytes == 0)
        return give_up(c, function, "the root's own block has another length than those of the other ranks",
                       MPI_ERR_TRUNCATE);
      if constexpr (gathers) return carry_unequal(c, call, function, data, 1, all, when);
      else return scatter_unequal(c, call, function, all, data, when);
    }
    const Elements side{&data, 0, std::size_t(one_count)};
    return carry_packed(c, call, function, gathers ? side : all, gathers ? all : side, when);
  });
}

}  // namespace nearfield::mpi
