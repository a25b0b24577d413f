#include "engine/fibers/runner.hpp"

#include <utility>

#include "engine/base/out_of_memory.hpp"

namespace nearfield::fibers {

// Reserves room for all fibers in both lists, so that later steps, which could not be undone, allocate nothing.
void Runner::add_stack() {
  fibers_.reserve(fibers_.size() + 1);
  idle_.reserve(fibers_.size() + 1);
  lanes_.reserve(fibers_.size() + 1);
  fibers_.push_back(std::make_unique<Fiber>());
  idle_.push_back(fibers_.back().get());
}

void Runner::keep(std::size_t stacks) {
  const std::lock_guard lock(mutex_);
  try {
    while (fibers_.size() < stacks) add_stack();
  } catch (const OutOfMemory&) {
  }
}

void Runner::start(Lane& lane) {
  if (idle_.empty()) add_stack();
  lane.fiber = idle_.back();
  idle_.pop_back();
  lane.fiber->start([](void* body) { static_cast<Lane*>(body)->run(); }, &lane);
  if (!lane.fiber->ended()) {
    lanes_.push_back(&lane);
    if (lane.unattended) unattended_.fetch_add(1, std::memory_order_relaxed);
    count_.store(lanes_.size(), std::memory_order_relaxed);
    return;
  }
  idle_.push_back(lane.fiber);
  lane.fiber = nullptr;
}

bool Runner::poll_all(unsigned looks) {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;  // another thread polls
  moved_ = false;
  looks_ = lanes_.size() == 1 ? looks : 1;
  for (std::size_t i = 0; i < lanes_.size();) {
    Lane& lane = *lanes_[i];
    lane.fiber->resume();
    if (!lane.fiber->ended()) {
      ++i;
      continue;
    }
    moved_ = true;
    idle_.push_back(std::exchange(lane.fiber, nullptr));
    lanes_.erase(lanes_.begin() + std::ptrdiff_t(i));
    count_.store(lanes_.size(), std::memory_order_relaxed);
    const bool unattended = lane.unattended, last = lane.has_afterwards;
    if (last) {
      lock.unlock();
      lane.afterwards();
    }
    if (unattended) unattended_.fetch_sub(1, std::memory_order_release);  // SYNC: unattended
    if (last) return true;
  }
  return moved_;
}

void Runner::asleep_on(waiting::WakeWord* word) {
  std::uint64_t offset = 0;
  if (word && busy() && segment_.contains(word, sizeof *word)) {
    const std::unique_lock lock(mutex_, std::try_to_lock);  // otherwise another thread runs them
    if (lock) {
      for (Lane* lane : lanes_) lane->publish_awaited();
      offset = std::uint64_t(reinterpret_cast<std::byte*>(word) - segment_.base());
    }
  }
  asleep_on_.store(offset, std::memory_order_release);  // SYNC: asleep-on
}

}  // namespace nearfield::fibers
