// Bodies on stacks of their own whose caller waits with them (Track::attend), and the room for what is told ahead.
//
//   caller   starts the body | waits for what it is suspended for, resumes it | ...        until it has ended
//   body     runs, suspended at each wait, with what it waits for in Attended
//   caller   has no patience left: leaves it; whoever resumes it from then on is the runner, and waits suspend it
#include <exception>

#include "engine/fibers/fiber.hpp"
#include "engine/track/waits.hpp"

namespace nearfield::team {

// A body, and what it waits for.
struct Track::Attended {
  fibers::Fiber& fiber;
  bool (*flag)(void*) = nullptr;
  void* flag_context = nullptr;
  bool (*lacking)(void*, int) = nullptr;
  void* context = nullptr;
  Awaited awaited{};
  std::exception_ptr vain{};  // why there is no use in waiting
};

// Who may have to be left is not left at once: what others do with us would have to wait for our next call.
std::uint64_t Track::patience() const { return node_.policy().crowded ? 5'000'000 : 200'000; }

// On the stack of the thread that has called, since waits call the host.
bool Track::attend(fibers::Fiber& fiber, void (*body)(void*), void* context) {
  Attended attended{fiber};
  attended_ = &attended;
  fiber.start(body, context);
  const std::uint64_t limit = fiber.ended() ? 0 : waiting::nanoseconds() + patience();
  while (!fiber.ended()) {
    bool there = false;
    try {
      WaitHost host(*this, attended.awaited, attended.lacking, attended.context);
      const auto over = [&] {
        return (there = attended.flag(attended.flag_context)) || waiting::nanoseconds() > limit;
      };
      waiting::wait_slowly(node_.policy(), over, host);
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

void Track::wait_attended(bool (*flag)(void*), void* flag_context, bool (*lacking)(void*, int), void* context,
                          Awaited awaited) {
  attended_->flag = flag;
  attended_->flag_context = flag_context;
  attended_->lacking = lacking;
  attended_->context = context;
  attended_->awaited = awaited;
  attended_->fiber.suspend();
  if (!attended_) return suspend(flag, flag_context, lacking, context, awaited);
  if (attended_->vain) std::rethrow_exception(attended_->vain);
}

// `wanted`: what saves the next looks.
bool Track::room_ready(Atomic<std::uint64_t> TrackWords::*done, What what, std::uint64_t wanted, std::uint64_t needed,
                       std::uint64_t& safe) {
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

}  // namespace nearfield::team
