// Epochs: synchronisation of a window's members.
#include <algorithm>

#include "engine/windows/window.hpp"

namespace nearfield::windows {
namespace {

bool reached(const Atomic<std::uint32_t>& counter, std::uint32_t number) {
  return std::int32_t(counter.load(std::memory_order_acquire) - number) >= 0;  // SYNC: window-posted, window-completed
}

}  // namespace

// ---------------------------------------------------------------- all members

void Window::meet() { context_.slots.allgather(nullptr, 0); }

bool Window::fence(bool opens, bool meets) {
  if (!idle()) return false;
  if (meets) meet();
  everywhere_.store(opens, std::memory_order_relaxed);
  return true;
}

// ---------------------------------------------------------------- post, start, complete, wait

bool Window::post(std::span<const int> origins, bool notifies) {
  if (posted_) return false;
  posted_ = true;
  origins_.assign(origins.begin(), origins.end());
  for (const int origin : origins) {
    ++waits_[std::size_t(origin)];
    if (!notifies) continue;
    auto& posted = towards(origin, rank_).posted;
    posted.store(posted.load(std::memory_order_relaxed) + 1, std::memory_order_release);  // SYNC: window-posted
    notify(origin);
  }
  return true;
}

bool Window::start(std::span<const int> targets, bool waits) {
  if (started_ || passive()) return false;
  for (const int target : targets) {
    if (!waits) continue;
    const std::uint32_t number = ++starts_[std::size_t(target)];
    const auto& posted = towards(rank_, target).posted;
    wait_for(for_notice, 0, [&] { return reached(posted, number); }, [&](int m) { return m == target; });
  }
  for (const int target : targets) access_[std::size_t(target)] = Access::started;
  targets_.assign(targets.begin(), targets.end());
  started_ = true;
  everywhere_.store(false, std::memory_order_relaxed);
  return true;
}

bool Window::complete() {
  if (!started_) return false;
  for (const int target : targets_) {
    access_[std::size_t(target)] = Access::none;
    auto& completed = towards(target, rank_).completed;
    // SYNC: window-completed
    completed.store(completed.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    notify(target);
  }
  started_ = false;
  return true;
}

bool Window::wait() {
  if (!posted_) return false;
  for (const int origin : origins_) {
    const auto& completed = towards(rank_, origin).completed;
    const std::uint32_t number = waits_[std::size_t(origin)];
    wait_for(for_notice, 0, [&] { return reached(completed, number); }, [&](int m) { return m == origin; });
  }
  posted_ = false;
  return true;
}

bool Window::test(bool& done) {
  if (!posted_) return false;
  done = std::ranges::all_of(
      origins_, [&](int origin) { return reached(towards(rank_, origin).completed, waits_[std::size_t(origin)]); });
  if (done) posted_ = false;
  else team_->process().progress().poll();
  return true;
}

// ---------------------------------------------------------------- locks

void Window::acquire(int target, bool exclusive) {
  Lock& lock = words(target).lock;
  towards(rank_, target).engaged.store(1, std::memory_order_relaxed);
  if (!exclusive && held_.load(std::memory_order_relaxed) > 0) return acquire_urgently(target);
  const std::uint32_t ticket = lock.ask();  // publishes `engaged`
  const auto our_turn = [&] { return lock.admits(ticket, exclusive); };
  if (!our_turn()) [[unlikely]]
    wait_for(for_lock + std::uint32_t(target), ticket, our_turn,
             // SYNC: engaged
             [&](int m) { return m != rank_ && towards(m, target).engaged.load(std::memory_order_acquire) != 0; });
  if (!exclusive) ring_next(target, lock.enter());
  count_lock(1);
}

// Takes a shared lock while we hold others, overtaking writers that only wait (lock.hpp).
void Window::acquire_urgently(int target) {
  Lock& lock = words(target).lock;
  auto entered = lock.enter_free();  // publishes `engaged`
  if (!entered) [[unlikely]] {
    const std::uint32_t phase = lock.call();  // publishes `engaged`
    Patience patience;
    const auto overtakes = [&](std::uint32_t so_far) { return patience.ends(so_far, waiting::nanoseconds()); };
    const auto come_in = [&] { return (entered = lock.come_in(phase, overtakes)).has_value(); };
    wait_for((for_lock + std::uint32_t(target)) | urgent, 0, come_in,
             // SYNC: engaged
             [&](int m) { return m != rank_ && towards(m, target).engaged.load(std::memory_order_acquire) != 0; });
  }
  ring_next(target, *entered);
  count_lock(1);
}

void Window::release(int target, bool exclusive) {
  count_lock(-1);
  const Turn next = words(target).lock.leave(exclusive, team_->process().policy().oversubscribed);
  towards(rank_, target).engaged.store(0, std::memory_order_release);  // SYNC: engaged
  ring_next(target, next, exclusive && next.has_readers());
}

bool Window::lock(int target, bool exclusive, bool checked) {
  Access& access = access_[std::size_t(target)];
  if (access != Access::none || all_locked_ || started_) return false;
  if (checked) acquire(target, exclusive);
  access = !checked ? Access::unchecked : exclusive ? Access::exclusive : Access::shared;
  everywhere_.store(false, std::memory_order_relaxed);
  return true;
}

bool Window::unlock(int target) {
  Access& access = access_[std::size_t(target)];
  if (access <= Access::started) return false;
  const Access held = access;
  access = Access::none;
  if (held == Access::unchecked) flush();
  else release(target, held == Access::exclusive);
  return true;
}

bool Window::lock_all(bool checked) {
  if (started_ || passive()) return false;
  // In the order of ranks; all but the first urgently, since we hold a lock by then.
  for (int target = 0; checked && target < size_; ++target) acquire(target, false);
  all_locked_ = true;
  everywhere_.store(true, std::memory_order_relaxed);
  all_checked_ = checked;
  return true;
}

void Window::end_epochs() {
  if (started_) complete();
  unlock_all();
  for (int target = 0; target < size_; ++target) unlock(target);
  posted_ = false;
}

bool Window::unlock_all() {
  if (!all_locked_) return false;
  all_locked_ = false;
  everywhere_.store(false, std::memory_order_relaxed);
  if (!all_checked_) flush();
  for (int target = 0; all_checked_ && target < size_; ++target) release(target, false);
  return true;
}

}  // namespace nearfield::windows
