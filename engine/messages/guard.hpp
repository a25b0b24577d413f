// The messenger's lock, as it is held by one call. Who waits looks again and again, and would keep it from who has
// something to do, since a mutex goes to whoever asks at the right moment:
//
//   call   try, else waiters_ += wants_lock, sleeps for the lock, waiters_ -= wants_lock
//   poll   tries only while nobody wants it
#pragma once
#include "engine/messages/messenger.hpp"

namespace nearfield::messages {

// In Messenger::waiters_, above the number of threads that wait for messages.
inline constexpr int wants_lock = 1 << 16;

struct Messenger::Guard {
  explicit Guard(Messenger& messenger)
      : messenger_(messenger), lock_(messenger.lock_, std::defer_lock), threaded_(messenger.threaded_) {
    if (threaded_) get();
  }
  Guard(Messenger& messenger, std::try_to_lock_t)
      : messenger_(messenger), lock_(messenger.lock_, std::defer_lock), threaded_(messenger.threaded_) {
    if (threaded_) owns_ = messenger.waiters_.load(std::memory_order_relaxed) < wants_lock && lock_.try_lock();
  }
  // The caller holds the lock, and keeps it.
  enum Held { held };
  Guard(Messenger& messenger, Held)
      : messenger_(messenger), lock_(messenger.lock_, std::defer_lock), threaded_(false) {}
  ~Guard() {
    if (stands_in_) messenger_.standing_in_ = false;
  }
  Guard(const Guard&) = delete;
  // What is done under it is no thread's of the program: it may not ask elsewhere. pre: owns().
  void stand_in() { messenger_.standing_in_ = stands_in_ = true; }
  bool owns() const { return owns_; }
  // While bytes are copied: the request in question is marked busy and nobody else touches it.
  void let_go() {
    if (!threaded_) return;
    if (stands_in_) messenger_.standing_in_ = false;
    lock_.unlock();
  }
  void take() {
    if (!threaded_) return;
    get();
    if (stands_in_) messenger_.standing_in_ = true;
  }

 private:
  void get() {
    if (lock_.try_lock()) return;
    messenger_.waiters_.fetch_add(wants_lock, std::memory_order_relaxed);
    lock_.lock();
    messenger_.waiters_.fetch_sub(wants_lock, std::memory_order_relaxed);
  }
  Messenger& messenger_;
  std::unique_lock<std::mutex> lock_;
  bool threaded_, owns_ = true, stands_in_ = false;
};

}  // namespace nearfield::messages
