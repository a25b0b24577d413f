// The log of a member's calls in a context. Reports of waits that cannot end and of wrong calls are made from it.
//
//   owner     called[n % calls_known] = call n (release), calls = n (release); doing = the call, 0 when it ends
//   others    read them in long waits, and when lengths differ
#pragma once
#include <string>

#include "engine/base/function_ref.hpp"
#include "engine/context/members.hpp"

namespace nearfield::context {

class CallLog {
 public:
  explicit CallLog(const ContextMembers& members) : members_(members) {}

  void enter(std::uint64_t packed_call) { members_.mine->doing.store(packed_call, std::memory_order_relaxed); }
  // The same for a call that all members make.
  void enter_collective(std::uint64_t packed_call) {
    ContextControlBlock& mine = *members_.mine;
    mine.called[++calls_ % calls_known].store(packed_call, std::memory_order_release);  // SYNC: called
    mine.calls.store(calls_, std::memory_order_release);                                // SYNC: calls
    mine.doing.store(packed_call, std::memory_order_relaxed);
  }
  void leave() { enter(0); }
  // Describes our call.
  std::string describe() const;
  // Reports that members have different lengths in our call. Throws UnequalLengths. `in_step`: all members that we have
  // looked at have published a length, so the team can go on; otherwise it is broken off.
  [[noreturn]] void report_lengths(bool in_step = true) const;
  // Throws if a member that is waited for has made another call than ours, or has finished ours.
  void look_for_other_calls(std::uint64_t elapsed, FunctionRef<bool(int)> lacks);

 private:
  // Returns the member's call of that number; 0: it has not begun it, or later calls have overwritten it.
  std::uint64_t call_of(int member, std::uint64_t number) const;
  std::string describe_lengths() const;

  const ContextMembers& members_;
  std::uint64_t calls_ = 0;  // number of calls that we have begun
  // A mismatching call of another member, seen during our call `ours`; 0: none.
  struct Suspect {
    std::uint64_t ours = 0, theirs = 0, doing = 0;
    int member = 0;
    bool operator==(const Suspect&) const = default;
  } suspect_;
};

}  // namespace nearfield::context
