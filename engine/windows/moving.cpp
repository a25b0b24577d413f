// Put and get: copies by the origin. Long ones use the kind of stores that takes the origin least time, which trials
// find for each target (copying/landing.hpp).
#include "engine/windows/window.hpp"

namespace nearfield::windows {
namespace {

// One thread at a time does trials; the others use the best kind found so far.
template <class Trials, std::size_t Kinds>
void copy_and_learn(std::atomic_flag& busy, Trials& trials, const std::array<copying::Store, Kinds>& stores, void* to,
                    const void* from, std::size_t bytes) {
  if (busy.test_and_set(std::memory_order_acquire))  // SYNC: landing-busy
    return copying::copy(to, from, bytes, stores[Trials::best_elsewhere(bytes)]);
  const auto choice = trials.next(bytes);
  if (!choice.sample) {
    busy.clear(std::memory_order_release);  // SYNC: landing-busy
    return copying::copy(to, from, bytes, stores[choice.kind]);
  }
  const std::uint64_t begin = processor::ticks();
  copying::copy(to, from, bytes, stores[choice.kind]);
  trials.note(choice.kind, bytes, processor::ticks_since(begin));
  busy.clear(std::memory_order_release);  // SYNC: landing-busy
}

}  // namespace

void Window::put_long(int target, std::byte* at, const void* from, std::size_t bytes) {
  Landing& landing = landing_[std::size_t(target)];
  copy_and_learn(landing.busy, landing.putting, copying::put_stores, at, from, bytes);
}

void Window::get_long(int target, const std::byte* at, void* to, std::size_t bytes) {
  Landing& landing = landing_[std::size_t(target)];
  copy_and_learn(landing.busy, landing.getting, copying::get_stores, to, at, bytes);
}

}  // namespace nearfield::windows
