// Wrong programs: members of one call with different lengths. No row writes beyond a member's buffer, and no member
// hangs; a member with less room than data has an error.
#pragma once
#include <algorithm>

#include "engine/context/context.hpp"

namespace nearfield::collectives {

using context::CollectiveContext;

// Compares the lengths that members have published with ours. Data that does not fit is reported at the end of the
// call: the rings are consistent then, so members may go on after the error. Less data than we expect is reported if
// the host would (team::Team::exact_bcast).
class Lengths {
 public:
  Lengths(const CollectiveContext& context, std::size_t bytes) : context_(context), bytes_(bytes) {}
  void look(int member, std::size_t theirs) {
    if (theirs == bytes_) [[likely]]
      return;
    if (member_ >= 0 && theirs <= theirs_) return;
    member_ = member;
    theirs_ = theirs;
  }
  // pre: members have just met, so their lines are in our cache. Our own is on its way to the others: reading it, too,
  // took 15 ns of 80.
  void look_at_slots(std::uint64_t seq) {
    for (int r = 0; r < context_.size(); ++r)
      if (r != context_.rank()) look(r, context_.slot_bytes(r, seq));
  }
  std::size_t longest() const { return std::max(theirs_, bytes_); }
  void report(bool exact = false) const {
    if (member_ >= 0 && (theirs_ > bytes_ || exact)) [[unlikely]]
      context_.report_lengths(member_, theirs_, bytes_);
  }

 private:
  const CollectiveContext& context_;
  const std::size_t bytes_;
  int member_ = -1;
  std::size_t theirs_ = 0;
};

// For rounds in which all stage and all read, after the first barrier: if lengths differ all have an error before
// anything has been read.
inline void compare_lengths(CollectiveContext& context, std::uint64_t tick, std::size_t length) {
  int longest = -1;
  for (int r = 0; r < context.size(); ++r)
    if (context.published_length(r, tick) != length)
      if (longest < 0 || context.published_length(r, tick) > context.published_length(longest, tick)) longest = r;
  if (longest < 0) [[likely]]
    return;
  context.advance(tick - context.tick());
  context.consume(tick);
  context.report_lengths(longest, context.published_length(longest, tick), length);
}

}  // namespace nearfield::collectives
