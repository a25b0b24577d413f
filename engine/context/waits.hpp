// Waits of a context, and whom its stores wake.
//
//   who waits    polls, publishes which word it awaits (MemberControlBlock::awaits), and sleeps; on a fiber it
//                suspends the body instead. A process that sleeps publishes what its suspended bodies await
//                (ContextControlBlock::awaits)
//   who stores   wakes the members that await this word and at most this value; and, if it runs on a fiber itself,
//                processes whose suspended bodies do
//
// In further contexts all waits are on fibers, in the first one only those of calls that were left. Such a call is not
// woken by a member that runs without a fiber. That, or a missed wake, costs one bounded sleep (waiting/wait.hpp).
#pragma once
#include "engine/context/call_log.hpp"
#include "engine/waiting/wait.hpp"

namespace nearfield::fibers {
class Fiber;
}

namespace nearfield::context {

struct AwaitedWord {
  std::uint32_t whom;  // rank + 1, or `everybody`
  What what = What::gate;
  std::uint64_t value = 0;
};

class Waits {
 public:
  Waits(const ContextMembers& members, CallLog& calls) : members_(members), calls_(calls) {}

  // Waits until `flag()`. `lacking(member)`: returns whether we wait for that member (slow path only).
  template <class Flag, class Lacking>
  void wait(Flag flag, Lacking lacking, AwaitedWord awaited) {
    if (flag()) return;
    if (!fiber_ && !policy_.oversubscribed) {
      processor::pause();
      if (waiting::spin(64, flag)) return;
    }
    wait_on(flag, lacking, awaited);
  }
  // Waits until that word of a member is at least `value`.
  template <class Lacking>
  void wait_for(int member, const Atomic<std::uint64_t>& word, What what, std::uint64_t value, Lacking lacking) {
    // SYNC: published, consumed, gathered, released
    wait([&] { return word.load(std::memory_order_acquire) >= value; }, lacking,
         {std::uint32_t(member + 1), what, value});
  }
  void wait_for(int member, const Atomic<std::uint64_t>& word, What what, std::uint64_t value) {
    wait_for(member, word, what, value, [&](int m) { return m == member; });
  }
  // The same for a flag that others may set without waking us.
  void wait_until(FunctionRef<bool()> flag, FunctionRef<bool(int)> lacks) {
    wait(flag, lacks, {everybody, What::unrung});
  }
  // How long, in ns, a member polls for late members before it leaves a call (choosing/leaving.hpp). That call then
  // progresses only while the member is in later calls.
  std::uint64_t patience() const { return policy_.oversubscribed ? 5'000'000 : 200'000; }
  // Called by long waits now and then, `elapsed` ns after they began: throws if the wait is in vain, and informs the
  // hang reporter.
  void inspect(std::uint64_t elapsed, FunctionRef<bool(int)> lacks);

  // Wakes members that await that word of ours.
  void wake(What what, std::uint64_t value) {
    if (fiber_) [[unlikely]] {
      wake_suspended(std::uint32_t(members_.rank + 1), what, value);
      if (members_.number) return;
    }
    if (own_.watched.load(std::memory_order_relaxed) != 0) wake_sleepers(what, value);
  }
  void wake_everybody();

  // From now on waits suspend the body that runs on that fiber.
  void suspend_by(fibers::Fiber* fiber) { fiber_ = fiber; }
  void publish_awaited();  // publishes what the suspended body awaits, to members that may wake us

 private:
  template <class Flag, class Lacking>
  [[gnu::noinline]] void wait_on(Flag flag, Lacking lacking, AwaitedWord awaited) {
    if (fiber_) return suspend(flag, lacking, awaited);
    const bool everyone = awaited.whom == everybody, unrung = awaited.what == What::unrung;
    waiting::wait_slowly(policy_, flag,
                         {.others = members_.process.progress(),
                          .inspect = [&](std::uint64_t elapsed) { inspect(elapsed, lacking); },
                          .word = everyone ? &members_.gate->wake_word : &own_.wake_word,
                          .publish = [&](bool asleep) { publish_asleep(asleep, awaited); },
                          .one_event = everyone && !unrung,
                          .longest_nap = unrung ? waiting::short_nap : ~std::uint64_t{0}});
  }
  void suspend(FunctionRef<bool()> flag, FunctionRef<bool(int)> lacks, AwaitedWord awaited);
  void publish_asleep(bool asleep, AwaitedWord awaited);
  void wake_sleepers(What what, std::uint64_t value);
  void wake_suspended(std::uint32_t awaited, What what, std::uint64_t value);

  const ContextMembers& members_;
  CallLog& calls_;
  const waiting::Policy& policy_ = members_.process.policy();
  MemberControlBlock& own_ = members_.team.words(members_.rank);
  fibers::Fiber* fiber_ = nullptr;
  AwaitedWord awaited_{};  // what the suspended body awaits
};

}  // namespace nearfield::context
