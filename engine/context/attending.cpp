// Fibers whose caller waits for them in a blocking call (CollectiveContext::attend), and room for operations that run
// ahead.
//
//   caller   starts the body | waits for the body's flag, resumes it | ...        until it has ended
//   body     runs; each wait stores its flag in Attended and suspends the body
//   caller   returns once its patience ends; from then on the runner resumes the body, whose waits suspend it
#include <exception>

#include "engine/context/waits.hpp"
#include "engine/fibers/fiber.hpp"

namespace nearfield::context {

// A body, and its wait.
struct CollectiveContext::Attended {
  fibers::Fiber& fiber;
  bool (*flag)(void*) = nullptr;
  void* flag_context = nullptr;
  bool (*lacking)(void*, int) = nullptr;
  void* argument = nullptr;
  Awaited awaited{};
  std::exception_ptr vain{};  // set if the wait is in vain
};

// A body is not left at once, since it would then progress only in our next call. Nanoseconds.
std::uint64_t CollectiveContext::patience() const { return process_.policy().oversubscribed ? 5'000'000 : 200'000; }

// Waits run on the caller's stack, since they call the host.
bool CollectiveContext::attend(fibers::Fiber& fiber, void (*body)(void*), void* argument) {
  Attended attended{fiber};
  attended_ = &attended;
  fiber.start(body, argument);
  const std::uint64_t limit = fiber.ended() ? 0 : waiting::nanoseconds() + patience();
  while (!fiber.ended()) {
    bool there = false;
    try {
      const auto over = [&] {
        return (there = attended.flag(attended.flag_context)) || waiting::nanoseconds() > limit;
      };
      wait_in_place(over, attended.lacking, attended.argument, attended.awaited);
    } catch (...) {
      attended.vain = std::current_exception();
    }
    if (!there && !attended.vain) break;
    fiber.resume();
  }
  attended_ = nullptr;
  if (fiber.ended()) return true;
  fiber_ = &fiber;
  return false;
}

void CollectiveContext::wait_attended(bool (*flag)(void*), void* flag_context, bool (*lacking)(void*, int),
                                      void* argument, Awaited awaited) {
  attended_->flag = flag;
  attended_->flag_context = flag_context;
  attended_->lacking = lacking;
  attended_->argument = argument;
  attended_->awaited = awaited;
  attended_->fiber.suspend();
  if (!attended_) return suspend(flag, flag_context, lacking, argument, awaited);
  if (attended_->vain) std::rethrow_exception(attended_->vain);
}

// `wanted`: the count at which the next calls need not look.
bool CollectiveContext::room_ready(Atomic<std::uint64_t> ContextControlBlock::*done, What what, std::uint64_t wanted,
                                   std::uint64_t needed, std::uint64_t& safe) {
  std::uint64_t least = ~std::uint64_t{0}, limit = 0;
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    std::uint64_t seen = 0;
    const auto over = [&] {
      seen = (words_[r]->*done).load(std::memory_order_acquire);  // SYNC: slot-done, line-done, consumed
      if (seen >= wanted) return true;
      const std::uint64_t now = waiting::nanoseconds();
      if (limit == 0) limit = now + patience();
      return now > limit;
    };
    wait(over, [&](int m) { return m == r; }, {std::uint32_t(r + 1), what, wanted});
    least = std::min(least, seen);
  }
  safe = std::max(safe, least);
  return least >= needed;
}

}  // namespace nearfield::context
