// Waits of contexts, for the files that implement them.
#pragma once
#include "engine/context/context.hpp"

namespace nearfield::context {

// Waits until `flag()`. `lacking(member)`: returns whether we wait for that member (slow path only).
template <class Flag, class Lacking>
inline void CollectiveContext::wait(Flag flag, Lacking lacking, Awaited awaited) {
  if (flag()) return;
  if (!fiber_ && !process_.policy().oversubscribed) {
    processor::pause();
    if (waiting::spin(64, flag)) return;
  }
  wait_on(flag, lacking, awaited);
}

template <class Flag, class Lacking>
[[gnu::noinline]] void CollectiveContext::wait_on(Flag flag, Lacking lacking, Awaited awaited) {
  auto lacks = [](void* argument, int member) { return (*static_cast<Lacking*>(argument))(member); };
  auto there = [](void* argument) { return (*static_cast<Flag*>(argument))(); };
  if (fiber_) return suspend(there, &flag, lacks, &lacking, awaited);
  wait_in_place(flag, lacks, &lacking, awaited);
}

// On the stack of the thread that waits.
template <class Flag>
inline void CollectiveContext::wait_in_place(Flag flag, bool (*lacking)(void*, int), void* argument, Awaited awaited) {
  const bool everyone = awaited.whom == everybody, unrung = awaited.what == What::unrung;
  waiting::wait_slowly(process_.policy(), flag,
                       {.others = process_.progress(),
                        .inspect = [&](std::uint64_t elapsed) { inspect(elapsed, lacking, argument); },
                        .word = everyone ? &gate_->wake_word : &own_->wake_word,
                        .publish = [&](bool asleep) { publish_asleep(asleep, awaited); },
                        .one_event = everyone && !unrung,
                        .longest_nap = unrung ? waiting::short_nap : ~std::uint64_t{0}});
}

}  // namespace nearfield::context
