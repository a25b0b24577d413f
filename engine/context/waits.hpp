// Waits of contexts, for the files that implement them.
#pragma once
#include "engine/context/context.hpp"

namespace nearfield::context {

// Adapts a wait to waiting::wait_slowly.
struct CollectiveContext::WaitHost : waiting::Waiter {
  WaitHost(CollectiveContext& context, Awaited awaited, bool (*lacking)(void*, int), void* argument)
      : Waiter{context.process_.progress()}, context(context), awaited(awaited), lacking(lacking), argument(argument) {}
  CollectiveContext& context;
  Awaited awaited;
  bool (*lacking)(void*, int);
  void* argument;
  MemberControlBlock& own() { return context.team_.words(context.rank_); }
  Atomic<std::uint32_t>& watchers() {
    return awaited.whom == everybody ? context.gate_->sleepers : context.team_.words(int(awaited.whom) - 1).watched;
  }
  bool one_event() const { return awaited.whom == everybody && awaited.what != What::unrung; }
  std::uint64_t longest_nap() const { return awaited.what == What::unrung ? waiting::short_nap : ~std::uint64_t{0}; }
  Atomic<std::uint32_t>& wake_word() { return awaited.whom == everybody ? context.gate_->wake_word : own().wake_word; }
  void before_sleep() {
    own().awaits_what.store(std::uint32_t(awaited.what), std::memory_order_relaxed);
    own().awaits_value.store(awaited.value, std::memory_order_relaxed);
    own().awaits.store(awaited.whom, std::memory_order_release);  // SYNC: awaits
    watchers().fetch_add(1, std::memory_order_seq_cst);           // SYNC: watchers
  }
  void after_sleep() {
    watchers().fetch_sub(1, std::memory_order_relaxed);
    own().awaits.store(0, std::memory_order_relaxed);
  }
  void inspect(std::uint64_t elapsed) { context.inspect(elapsed, lacking, argument); }
};

// Waits until `flag()`. `lacking(member)`: returns whether we wait for that member (slow path only).
template <class Flag, class Lacking>
inline void CollectiveContext::wait(Flag flag, Lacking lacking, Awaited awaited) {
  if (flag()) return;
  if (!fiber_ && !process_.policy().oversubscribed) {
    for (int i = 0; i < 64; ++i) {
      processor::pause();
      if (flag()) return;
    }
  }
  wait_on(flag, lacking, awaited);
}

template <class Flag, class Lacking>
[[gnu::noinline]] void CollectiveContext::wait_on(Flag flag, Lacking lacking, Awaited awaited) {
  auto lacks = [](void* argument, int member) { return (*static_cast<Lacking*>(argument))(member); };
  auto there = [](void* argument) { return (*static_cast<Flag*>(argument))(); };
  if (fiber_) return suspend(there, &flag, lacks, &lacking, awaited);
  if (attended_) return wait_attended(there, &flag, lacks, &lacking, awaited);
  WaitHost host(*this, awaited, lacks, &lacking);
  waiting::wait_slowly(process_.policy(), flag, host);
}

}  // namespace nearfield::context
