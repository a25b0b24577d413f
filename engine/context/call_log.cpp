#include "engine/context/call_log.hpp"

#include <algorithm>
#include <utility>

namespace nearfield::context {

std::string CallLog::describe() const {
  return members_.process.services().describe(members_.mine->doing.load(std::memory_order_relaxed));
}

// A member overwrites its oldest call before it counts the new one.
std::uint64_t CallLog::call_of(int member, std::uint64_t number) const {
  const ContextControlBlock& theirs = *members_.words[member];
  const auto known = [&](std::uint64_t begun) { return begun >= number && begun - number < calls_known - 1; };
  if (!number || !known(theirs.calls.load(std::memory_order_acquire))) return 0;                   // SYNC: calls
  const std::uint64_t call = theirs.called[number % calls_known].load(std::memory_order_acquire);  // SYNC: called
  return known(theirs.calls.load(std::memory_order_relaxed)) ? call : 0;
}

// Members count and log their calls, so a call with our number that is not ours is certainly a mismatch. A member that
// has begun a later call has done its part of ours. If we lack it in two looks in a row, its call was another one.
// Members that differ in length alone report that themselves if they run the same row, and may only be late.
void CallLog::look_for_other_calls(std::uint64_t elapsed, FunctionRef<bool(int)> lacks) {
  constexpr std::uint64_t late = 1'000'000'000;
  if (!members_.mine->doing.load(std::memory_order_relaxed) || !calls_) return;
  const team::Services& services = members_.process.services();
  const std::uint64_t ours = call_of(members_.rank, calls_);
  for (int r = 0; r < members_.size; ++r) {
    if (r == members_.rank || !lacks(r)) continue;
    const std::uint64_t begun = members_.words[r]->calls.load(std::memory_order_acquire);  // SYNC: calls
    if (begun < calls_) continue;
    const std::uint64_t theirs = call_of(r, calls_);
    const bool same = theirs == ours || theirs == 0;
    if (same && begun == calls_) continue;
    const bool other_length = !same && !((theirs ^ ours) & ~services.length_of_doing());
    if (other_length && elapsed < late) continue;
    const std::uint64_t now = members_.words[r]->doing.load(std::memory_order_relaxed);
    const Suspect seen{calls_, begun, now, r};
    if (same && std::exchange(suspect_, seen) != seen) return;
    if (other_length) report_lengths(false);
    const auto rank = [](int member) { return "rank " + std::to_string(member); };
    const std::string text = rank(r) + " of a communicator of " + std::to_string(members_.size) +
                             (same ? " has continued, and is " : " is ") + services.describe(same ? now : theirs) +
                             " where " + rank(members_.rank) + " is " + services.describe(ours);
    members_.team.break_off(text.c_str());
    throw Broken(text);
  }
}

// As "in allreduce rank 1 has 16 bytes where ranks 0, 2 have 8 bytes": the rarest length first.
std::string CallLog::describe_lengths() const {
  const team::Services& services = members_.process.services();
  const std::uint64_t of_length = services.length_of_doing();
  struct Group {
    std::uint64_t bytes;
    std::vector<int> members;
  };
  std::vector<Group> groups;
  for (int r = 0; r < members_.size; ++r) {
    const std::uint64_t call = call_of(r, calls_);
    if (!call) continue;
    const auto same = std::ranges::find(groups, call & of_length, &Group::bytes);
    if (same == groups.end()) groups.push_back({call & of_length, {r}});
    else same->members.push_back(r);
  }
  if (groups.size() < 2)
    return "ranks no longer agree on their calls, after a call with different lengths, " + describe();
  std::ranges::stable_sort(groups, {}, [](const Group& group) { return group.members.size(); });
  std::string text;
  constexpr std::size_t most_groups = 4, most_members = 8;
  for (std::size_t g = 0; g < std::min(groups.size(), most_groups); ++g) {
    const auto& [bytes, members] = groups[g];
    text += (g == 0 ? "" : g == 1 ? " where " : ", ") + std::string(members.size() == 1 ? "rank " : "ranks ");
    for (std::size_t i = 0; i < std::min(members.size(), most_members); ++i)
      text += (i ? ", " : "") + std::to_string(members[i]);
    if (members.size() > most_members) text += " and " + std::to_string(members.size() - most_members) + " more";
    text += (members.size() == 1 ? " has " : " have ") + std::to_string(bytes) + " bytes";
  }
  return text + ", " + services.describe(call_of(members_.rank, calls_));
}

void CallLog::report_lengths(bool in_step) const {
  const std::string text = describe_lengths();
  if (!in_step) members_.team.break_off(text.c_str(), team::Break::by_lengths);
  throw team::UnequalLengths(text);
}

}  // namespace nearfield::context
