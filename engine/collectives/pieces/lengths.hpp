// In wrong programs members of one call have different lengths. No row then writes beyond a member's buffer, and no
// member hangs; a member that gets data of another length than it expects has an error.
//
//   all have data for all     all see all lengths, and all end the call before anything has moved (compare_lengths)
//   a root, or a chain        receivers compare with the members they receive from, and report at the end of the
//                             call, when the rings are consistent (Lengths); senders may have left
//   members' rows differ      long waits compare what members have called (CallLog::look_for_other_calls)
//
// Each member publishes its length where readers look anyway: with a record, the place of a copy buffer, or exchanged
// buffers. What the error says comes from the members' calls (context/call_log.hpp).
#pragma once
#include <algorithm>

#include "engine/collectives/call.hpp"
#include "engine/context/context.hpp"

namespace nearfield::collectives {

using context::BufferUse, context::CollectiveContext;

// Returns whether it is an error that a member has `given` bytes for one that expects `expected` bytes.
inline bool unequal(const CollectiveContext& context, Collective collective, std::size_t given, std::size_t expected) {
  if (given == expected) [[likely]]
    return false;
  return given > expected || !(context.team().takes_less >> unsigned(collective) & 1);
}

// Compares the lengths of members that have data for us with the length that we expect, `bytes`.
class Lengths {
 public:
  Lengths(const CollectiveContext& context, const Call& call, std::size_t bytes)
      : context_(context), collective_(call.collective), bytes_(bytes) {}
  Lengths(const CollectiveContext& context, const Call& call) : Lengths(context, call, call.bytes) {}
  void look(std::size_t theirs) { differ_ |= unequal(context_, collective_, theirs, bytes_); }
  void note(bool differ) { differ_ |= differ; }
  bool differ() const { return differ_; }
  void report() const {
    if (differ_) [[unlikely]]
      context_.calls.report_lengths();
  }

 private:
  const CollectiveContext& context_;
  const Collective collective_;
  const std::size_t bytes_;
  bool differ_ = false;
};

// Compares length_of(member) of the others with ours, where all members see all lengths. Calls at_fault() before the
// report. Our own word is not read, since its line is moving to the others: reading it took 15 of 80 ns.
template <class LengthOf, class AtFault>
void compare_lengths(const CollectiveContext& context, std::size_t ours, LengthOf length_of, AtFault at_fault) {
  bool differ = false, in_step = true;
  for (int r = 0; r < context.size(); ++r) {
    if (r == context.rank()) continue;
    const std::size_t theirs = length_of(r);
    differ |= theirs != ours;
    in_step &= theirs != context::no_length;
  }
  if (!differ) [[likely]]
    return;
  at_fault();
  context.calls.report_lengths(in_step);
}

// The same for rounds of copy buffers, at the first barrier.
inline void compare_in_rounds(CollectiveContext& context, std::uint64_t tick, std::size_t length) {
  compare_lengths(
      context, length, [&](int r) { return context.rounds.published_length(r, tick); },
      [&] {
        context.ticks.advance(tick - context.ticks.now());
        context.ticks.consume(tick);
      });
}

}  // namespace nearfield::collectives
