// Polls and waits of the Messenger.
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
  matcher_.decide();
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

void Messenger::poll_surely() {
  Guard guard(lock_);
  poll_locked(guard);
}

void Messenger::publish_asleep(bool asleep) {
  auto& sleepers = mailboxes_.own().asleep;
  if (asleep) {
    sleepers.fetch_add(1, std::memory_order_seq_cst);     // SYNC: mailbox-asleep
    look_at_all_.store(true, std::memory_order_relaxed);  // the last look before the sleep
  } else {
    sleepers.fetch_sub(1, std::memory_order_relaxed);
  }
}

bool Messenger::step_in_host(FunctionRef<bool()> rank_is_back, waiting::WakeWord* sleeps_on) {
  Guard guard(lock_, Guard::throughout);
  if (rank_is_back()) return false;
  if (sleeps_on) asleep_on(sleeps_on);
  return poll_locked(guard);
}

bool Messenger::run_in_host(FunctionRef<bool()> rank_is_back, FunctionRef<bool()> bodies) {
  const MessengerLock::RunningBodies running(lock_, rank_is_back);
  return running.there() && bodies();
}

bool Messenger::busy_in_host(FunctionRef<bool()> rank_is_back) {
  const Guard guard(lock_, Guard::throughout);
  return !rank_is_back() && matcher_.busy();
}

void Messenger::enter_host(waiting::WakeWord& word) {
  lock_.enter_host();
  rung_in_host_.store(&word, std::memory_order_relaxed);
  asleep_on(&word);
}

void Messenger::leave_host() {
  lock_.leave_host();
  rung_in_host_.store(nullptr, std::memory_order_relaxed);
  asleep_on(nullptr);
}

// Who finds another thread at work need not sleep long.
bool Messenger::busy() {
  const Guard guard(lock_, std::try_to_lock);
  return !guard.owns() || matcher_.busy();
}

void Messenger::wait(Request& request, FunctionRef<bool(int)> may_come_from) {
  if (request.complete()) return;  // what else has come is taken in by those who look for it
  attend(request);
  {
    const MessengerLock::Waiting waiters(lock_);
    const auto complete = [&] {
      poll();
      return request.complete();
    };
    const auto pause = [&] {
      if (waiters.several()) yield();
      else processor::await_loads();
    };
    if (waiting::spin(process().policy().oversubscribed ? 1 : 200, complete, pause)) return;
  }
  const auto awaited = [&](int m) {
    const int member = request.member;
    return member == m || (member < 0 && (!may_come_from || may_come_from(m)));
  };
  wait_until([&] { return request.complete(); }, awaited, nullptr, request.is_send ? "sending" : "receiving");
}

bool Messenger::look_for_dead() {
  look_for_damage();
  for (int r = 0; r < mailboxes_.count(); ++r)
    if (mailboxes_.died(r)) any_dead_.store(true, std::memory_order_relaxed);
  return any_dead();
}

void Messenger::look_for_damage() {
  const Guard guard(lock_, std::try_to_lock);
  if (guard.owns()) channels_.look_for_damage();
}

team::Died Messenger::death_of(int member, const char* doing) const {
  return team::Died("process " + std::to_string(mailboxes_.peer(member).pid) + " (rank " + std::to_string(member) +
                    " of those on this node) has " +
                    (mailboxes_.condemned(member) ? "written data that are not a message" : "ended") + "; rank " +
                    std::to_string(mailboxes_.me()) + " was " + doing);
}

void Messenger::inspect(std::uint64_t elapsed, FunctionRef<bool(int)> awaited, const char* doing) {
  hang_report::Awaited whom;
  look_for_damage();
  for (int r = 0; r < mailboxes_.count(); ++r) {
    if (r == mailboxes_.me() || !awaited(r)) continue;
    if (mailboxes_.died(r)) {
      any_dead_.store(true, std::memory_order_relaxed);
      throw death_of(r, doing);
    }
    whom.add(r);
  }
  if (auto* const reporter = process().hang_reporter()) reporter->waits(elapsed, whom);
}

void Messenger::wait_until(FunctionRef<bool()> done, FunctionRef<bool(int)> awaited, FunctionRef<void()> also,
                           const char* doing) {
  const waiting::Policy& policy = process().policy();
  const MessengerLock::Waiting waiters(lock_);
  const auto look = [&](std::uint64_t elapsed) { inspect(elapsed, awaited, doing); };
  const auto publish = [&](bool asleep) { publish_asleep(asleep); };
  waiting::Waiter waiter{
      .others = process().progress(), .inspect = look, .word = &wake_word(), .publish = publish, .also = also};
  // Whoever has the CPU takes in all there is before it gives the CPU away.
  const auto flag = [&] {
    for (int i = 0; i < 64; ++i) {
      const bool moved = poll();
      if (done()) return true;
      if (!moved) break;
      waiter.moved = true;
    }
    if (waiters.several()) yield();
    return false;
  };
  const auto pause = [&] {
    if (!policy.oversubscribed) processor::pause();
  };
  if (waiting::spin(policy.oversubscribed || waiters.several() ? 2 : 200, flag, pause)) return;
  waiting::Policy ours = policy;
  ours.sleep_at_once = false;  // that is for waits that one call ends for all
  ours.oversubscribed |= waiters.several();
  waiting::wait_slowly(ours, flag, waiter);
}

}  // namespace nearfield::messages
