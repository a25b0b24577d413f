#include "engine/context/waits.hpp"

#include "engine/fibers/fiber.hpp"
#include "engine/hang_report/reporter.hpp"

namespace nearfield::context {
namespace {

// A sleeper that awaits another word or a greater value would only sleep again.
bool is_reached(const auto& block, What what, std::uint64_t value) {
  return block.awaits_what.load(std::memory_order_relaxed) == std::uint32_t(what) &&
         block.awaits_value.load(std::memory_order_relaxed) <= value;
}

}  // namespace

// The thread does other work until the runner resumes us, which polls our flag while the thread waits elsewhere. If it
// sleeps, the member that we await notifies it (wake_suspended).
void Waits::suspend(FunctionRef<bool()> flag, FunctionRef<bool(int)> lacks, AwaitedWord awaited) {
  // Resumptions between readings of the clock; fewer when oversubscribed, since other ranks run for milliseconds in
  // between.
  const std::uint32_t looks = policy_.oversubscribed ? 16 : 256;
  fibers::Runner& runner = members_.process.runner();
  awaited_ = awaited;
  std::uint64_t start = 0, inspected = 0;
  for (std::uint32_t i = 1;; ++i) {
    fiber_->suspend();
    if (waiting::spin(runner.looks(), flag)) break;
    if (i % looks != 0) continue;
    const std::uint64_t now = waiting::nanoseconds();
    if (start == 0) start = inspected = now;
    if (now - inspected < waiting::between_inspections) continue;
    inspected = now;
    inspect(now - start, lacks);
  }
  runner.note_progress();
}

// Published by Runner::asleep_on.
void Waits::publish_awaited() {
  ContextControlBlock& mine = *members_.mine;
  mine.awaits.store(awaited_.whom, std::memory_order_relaxed);
  mine.awaits_what.store(std::uint32_t(awaited_.what), std::memory_order_relaxed);
  mine.awaits_value.store(awaited_.value, std::memory_order_relaxed);
}

void Waits::publish_asleep(bool asleep, AwaitedWord awaited) {
  auto& watchers =
      awaited.whom == everybody ? members_.gate->sleepers : members_.team.words(int(awaited.whom) - 1).watched;
  if (!asleep) {
    watchers.fetch_sub(1, std::memory_order_relaxed);
    own_.awaits.store(0, std::memory_order_relaxed);
    return;
  }
  own_.awaits_what.store(std::uint32_t(awaited.what), std::memory_order_relaxed);
  own_.awaits_value.store(awaited.value, std::memory_order_relaxed);
  own_.awaits.store(awaited.whom, std::memory_order_release);  // SYNC: awaits
  watchers.fetch_add(1, std::memory_order_seq_cst);            // SYNC: watchers
}

void Waits::wake_sleepers(What what, std::uint64_t value) {
  const auto us = std::uint32_t(members_.rank + 1);
  for (int r = 0; r < members_.size; ++r) {
    MemberControlBlock& other = members_.team.words(r);
    // SYNC: awaits
    if (r == members_.rank || other.awaits.load(std::memory_order_acquire) != us) continue;
    if (is_reached(other, what, value)) other.wake_word.wake();
  }
}

void Waits::wake_everybody() {
  if (fiber_) [[unlikely]] {
    wake_suspended(everybody, What::gate, 0);
    if (members_.number) return;
  }
  if (members_.gate->sleepers.load(std::memory_order_relaxed) != 0) members_.gate->wake_word.wake();
}

// Wakes processes that sleep while their body of this context awaits what we have done. As with wake words, one that is
// missed sleeps to the end of its short timeout.
void Waits::wake_suspended(std::uint32_t awaited, What what, std::uint64_t value) {
  for (int r = 0; r < members_.size; ++r) {
    if (r == members_.rank) continue;
    std::byte* const segment = members_.segments[r];
    const auto& header = *reinterpret_cast<const ProcessHeader*>(segment);
    const std::uint64_t where = header.asleep_on.load(std::memory_order_acquire);  // SYNC: asleep-on
    const ContextControlBlock& other = *members_.words[r];
    if (!where || other.awaits.load(std::memory_order_relaxed) != awaited) continue;
    if (awaited == everybody || is_reached(other, what, value))
      reinterpret_cast<waiting::WakeWord*>(segment + where)->wake();
  }
}

void Waits::inspect(std::uint64_t elapsed, FunctionRef<bool(int)> lacks) {
  members_.team.inspect([this] { return calls_.describe(); }, lacks);
  calls_.look_for_other_calls(elapsed, lacks);
  hang_report::HangReporter* const reporter = members_.process.hang_reporter();
  if (!reporter) return;
  hang_report::Awaited awaited;
  for (int r = 0; r < members_.size; ++r)
    if (r != members_.rank && lacks(r)) awaited.add(reporter->member_of(members_.peers[r]));
  if (fiber_) reporter->body_waits(awaited);
  else reporter->waits(elapsed, awaited);
}

}  // namespace nearfield::context
