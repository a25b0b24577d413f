// The collectives that reduce, one function for each class of parameters (mpi/functions.toml). MPI makes type and
// operator equal on all ranks, so they agree whether we have a kernel for them or the host combines the operands.
#pragma once
#include <limits>
#include <vector>

#include "mpi/shim/collectives/engine/combining.hpp"
#include "mpi/shim/collectives/engine/movement.hpp"
#include "mpi/shim/process/functions.hpp"

namespace nearfield::mpi {

using collectives::Call;
using collectives::Collective;

template <class When>
int refuse(Communicator& c, const Call& call, const char* function, Reason reason, const When& when) {
  if (!When::overlaps && checks(c) && reason != Reason::argument) {
    if (const int code = check_before_host(c, call, function); code != MPI_SUCCESS) return code;
  }
  return when.at_host(call.collective, reason);
}

// Serves a reduction for which we have no kernel. `reason`: why.
template <class When>
int combine_or_refuse(Communicator& c, const Call& call, const combining::Operands& given, const char* function,
                      Reason reason, const When& when) {
  if (reason == Reason::argument || (!c.team && !is_being_created(c)) || !combining::possible(given.type, given.op))
    return refuse(c, call, function, reason, when);
  if constexpr (When::overlaps) return combining::post(c, call.collective, given, function, when);
  else return combining::combine(c, call.collective, given, function, when.host_call);
}

// Returns whether there is nothing to reduce, so that all ranks return at once. pre: type and operator are valid.
template <class When>
bool nothing(const When&, const Communicator& c, const Call& call) {
  return !When::plans && call.bytes == 0 && !is_being_created(c) && !checks(c) && !broken_off(c);
}

// Return whether the host rejects the buffers. If it does not reject equal addresses, they mean in place.
inline bool wrong_buffer(const void* buffer) { return !buffer || buffer == MPI_IN_PLACE; }
inline bool wrong_buffers(const void* send, const void* recv, bool gets = true) {
  return !send || (gets && wrong_buffer(recv)) || (host_rejects_aliases && send == recv);
}

// Runs a reduction for which we have a kernel. Operands and result may be in device memory. In place they are one
// buffer, of which the result may be only a block.
template <class When>
int carry_reduction(Communicator& c, const Call& call, std::size_t send_bytes, std::size_t recv_bytes,
                    const char* function, const When& when) {
  if (!devices::possible()) [[likely]] {
    if constexpr (When::overlaps) return post_task(c, call, function, nullptr, when, call);
    else return carry(c, call, function, when.host_call);
  }
  return with_memory(c, function, [&] {
    Packed operands(const_cast<void*>(call.send), MPI_Count(send_bytes), host.byte, c.comm);
    Packed result(call.recv, MPI_Count(recv_bytes), host.byte, c.comm);
    return carry_packed(c, call, function, {&operands, 0, send_bytes},
                        {call.send == call.recv ? &operands : &result, 0, recv_bytes}, when);
  });
}

template <Collective collective, class When>
int rooted_reduction(const char* function, const When& when, Communicator& c, const void* send, void* recv,
                     MPI_Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm) {
  Call call{collective};
  call.root = root;
  if (root < 0 || root >= c.size) return when.at_host(collective, Reason::argument);
  if (const auto reason = describe_reduction(call, count, type, op))
    return combine_or_refuse(c, call, {{count, type, op}, send, recv, root}, function, *reason, when);
  const bool is_root = c.rank == root, in_place = send == MPI_IN_PLACE;
  if (call.bytes && (is_root ? (in_place ? wrong_buffer(recv) : wrong_buffers(send, recv)) : in_place || !send))
    return when.at_host(collective, Reason::argument);
  if (nothing(when, c, call)) return when.done(MPI_SUCCESS);
  call.send = in_place ? recv : send;
  call.recv = recv;
  return carry_reduction(c, call, call.bytes, is_root ? call.bytes : 0, function, when);
}

// A member that gets no result (the first of an exclusive scan) need not pass a receive buffer.
template <Collective collective, class When>
int reduction(const char* function, const When& when, Communicator& c, const void* send, void* recv, MPI_Count count,
              MPI_Datatype type, MPI_Op op, MPI_Comm) {
  constexpr const collectives::Operation& operation = collectives::operation(collective);
  Call call{collective};
  if (const auto reason = describe_reduction(call, count, type, op))
    return combine_or_refuse(c, call, {{count, type, op}, send, recv}, function, *reason, when);
  const bool in_place = send == MPI_IN_PLACE, gets = operation.gets.has(c.rank, 0);
  if (call.bytes && (in_place ? wrong_buffer(recv) : wrong_buffers(send, recv, gets)))
    return when.at_host(collective, Reason::argument);
  if (nothing(when, c, call)) return when.done(MPI_SUCCESS);
  call.send = in_place ? recv : send;
  call.recv = recv;
  return carry_reduction(c, call, operation.gives.each(c.size) * call.bytes, gets ? call.bytes : 0, function, when);
}

// Where each member's part of a vector begins, and where the last one ends.
class Ends {
 public:
  explicit Ends(int size) : more_(size < few ? 0 : std::size_t(size) + 1), ends_(size < few ? here_ : more_.data()) {}
  // False: counts that the host must judge.
  template <class N>
  bool fill(const N* counts, int size) {
    ends_[0] = 0;
    for (int r = 0; r < size; ++r) {
      equal_ &= counts[r] == counts[0];
      if (counts[r] < 0 || __builtin_add_overflow(ends_[r], std::size_t(counts[r]), &ends_[r + 1])) return false;
    }
    return ends_[size] <= std::size_t(std::numeric_limits<MPI_Count>::max());
  }
  const std::size_t* get() const { return ends_; }
  bool equal() const { return equal_; }

 private:
  static constexpr int few = 64;
  std::size_t here_[few + 1];
  std::vector<std::size_t> more_;
  std::size_t* const ends_;
  bool equal_ = true;
};

// Every member gets its part of the result, whose lengths all members know.
template <Collective collective, class When, class N>
int parted_reduction(const char* function, const When& when, Communicator& c, const void* send, void* recv,
                     const N* counts, MPI_Datatype type, MPI_Op op, MPI_Comm) {
  return with_memory(c, function, [&]() -> int {
    if (!c.team && !is_being_created(c)) return when.at_host(collective, Reason::communicator);
    Ends ends(c.size);
    if (!counts || !ends.fill(counts, c.size)) return when.at_host(collective, Reason::argument);
    const auto all = MPI_Count(ends.get()[c.size]);
    Call call{collective};
    call.parts = ends.equal() ? nullptr : ends.get();  // equal parts are the engine's default
    if (const auto reason = describe_reduction(call, all, type, op))
      return combine_or_refuse(c, call, {{all, type, op}, send, recv, -1, ends.get()}, function, *reason, when);
    const bool in_place = send == MPI_IN_PLACE, gets = counts[c.rank] > 0;
    if (call.bytes && (in_place ? wrong_buffer(recv) : wrong_buffers(send, recv, gets)))
      return when.at_host(collective, Reason::argument);
    if (nothing(when, c, call)) return when.done(MPI_SUCCESS);
    call.send = in_place ? recv : send;
    call.recv = recv;
    const std::size_t element = call.bytes / std::max<std::size_t>(call.count, 1);
    return carry_reduction(c, call, call.bytes, std::size_t(counts[c.rank]) * element, function, when);
  });
}

}  // namespace nearfield::mpi
