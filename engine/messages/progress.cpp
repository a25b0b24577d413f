// Polls: whatever can be done now, and the waits that are made of them.
#include <utility>

#include "engine/base/yield.hpp"
#include "engine/hang_report/reporter.hpp"
#include "engine/messages/messenger.hpp"
#include "engine/waiting/wait.hpp"

namespace nearfield::messages {

// Where there is nothing to do this is a look at one line of each peer that talks, and at that of the queue: programs
// test requests in loops.
bool Messenger::poll_locked(Guard& guard) {
  const bool all = look_at_all_.load(std::memory_order_relaxed);
  if (all) [[unlikely]]
    look_at_all_.store(false, std::memory_order_relaxed);
  matcher_.decide(guard);
  bool progress = channels_.poll(matcher_, all);
  if (protocols_.needs_step()) [[unlikely]]
    progress |= protocols_.go_on(guard, all);
  if (continuations_.any_due()) [[unlikely]]
    continuations_.follow([&](Request& request) { start_locked(request, guard); });
  return continuations_.go_on_with_stalled() || progress;
}

bool Messenger::poll() {
  Guard guard(lock_, std::try_to_lock);
  return guard.owns() && poll_locked(guard);
}

bool Messenger::help() {
  Guard guard(lock_, std::try_to_lock);
  if (!guard.owns()) return false;
  guard.set_by_progress_thread();
  return poll_locked(guard);
}

Atomic<std::uint32_t>& Messenger::begin_nap() {
  mailboxes_.own().asleep.fetch_add(1, std::memory_order_seq_cst);  // SYNC: mailbox-asleep
  look_at_all_.store(true, std::memory_order_relaxed);              // the last look before the sleep
  return mailboxes_.own().wake_word;
}

void Messenger::lend() {
  lock_.enter_host();
  asleep_on(&blocked_wake_word());
}

void Messenger::take_back() {
  mailboxes_.own().elsewhere.store(0, std::memory_order_relaxed);
  lock_.leave_host();
}

Messenger::Did Messenger::stand_in(FunctionRef<bool()> back) {
  Guard guard(lock_, Guard::throughout);
  if (back()) return Did::nothing_to_do;
  guard.set_by_progress_thread();
  if (poll_locked(guard)) return Did::moved;
  if (matcher_.busy()) return Did::waits;
  asleep_on(&blocked_wake_word());
  return poll_locked(guard) ? Did::moved : Did::nothing_to_do;  // what came before we could be rung
}

// Who finds another thread at work need not sleep long.
bool Messenger::busy() {
  const Guard guard(lock_, std::try_to_lock);
  return !guard.owns() || matcher_.busy();
}

void Messenger::wait(Request& request) {
  if (request.complete()) return;  // what else has come is taken in by those who look for it
  attend(request);
  {
    const MessengerLock::Waiting waiters(lock_);
    for (int i = process().policy().oversubscribed ? 1 : 200; i > 0; --i) {
      poll();
      if (request.complete()) return;
      if (waiters.several()) yield();
      else processor::await_loads();
    }
  }
  wait_until([&] { return request.complete(); }, [&](int m) { return request.member == m || request.member < 0; },
             nullptr, request.is_send ? "sending" : "receiving");
}

struct Messenger::SleepHost : waiting::Waiter {
  SleepHost(Messenger& messenger, FunctionRef<bool(int)> awaited, FunctionRef<void()> also, const char* doing)
      : Waiter{messenger.process().progress()}, messenger(messenger), awaited(awaited), also(also), doing(doing) {}
  Messenger& messenger;
  FunctionRef<bool(int)> awaited;
  FunctionRef<void()> also;
  const char* doing;
  bool moved_since = false;  // by looks at what we wait for

  std::uint64_t longest_nap() const { return also ? waiting::short_nap : ~std::uint64_t{0}; }
  bool turn() {
    const bool moved = others.turn();
    if (also) also();
    return std::exchange(moved_since, false) || moved;
  }
  Atomic<std::uint32_t>& wake_word() { return messenger.mailboxes_.own().wake_word; }
  void before_sleep() { static_cast<void>(messenger.begin_nap()); }
  void after_sleep() { messenger.end_nap(); }
  void inspect(std::uint64_t elapsed) {
    const Mailboxes& all = messenger.mailboxes_;
    hang_report::Awaited whom;
    for (int r = 0; r < all.count(); ++r) {
      if (r == all.me() || !awaited(r)) continue;
      if (all.died(r))
        throw team::Died("process " + std::to_string(all.peer(r).pid) + " (rank " + std::to_string(r) +
                         " of those on this node) has died; rank " + std::to_string(all.me()) + " was " + doing);
      whom.add(r);
    }
    if (auto* const reporter = all.process().hang_reporter()) reporter->waits(elapsed, whom);
  }
};

void Messenger::wait_until(FunctionRef<bool()> done, FunctionRef<bool(int)> awaited, FunctionRef<void()> also,
                           const char* doing) {
  const auto& policy = process().policy();
  SleepHost host(*this, awaited, also, doing);
  const MessengerLock::Waiting waiters(lock_);
  // Whoever has the CPU takes in all there is before it gives the CPU away.
  auto flag = [&] {
    for (int i = 0; i < 64; ++i) {
      const bool moved = poll();
      if (done()) return true;
      if (!moved) break;
      host.moved_since = true;
    }
    if (waiters.several()) yield();
    return false;
  };
  for (int i = policy.oversubscribed || waiters.several() ? 2 : 200; i > 0; --i) {
    if (flag()) return;
    if (!policy.oversubscribed) processor::pause();
  }
  waiting::Policy ours = policy;
  ours.sleep_at_once = false;  // that is for waits that one call ends for all
  ours.oversubscribed |= waiters.several();
  waiting::wait_slowly(ours, flag, host);
}

}  // namespace nearfield::messages
