// The messenger's lock. It covers matching, channels and what is under way; it is let go while the bytes of large
// messages are copied, and not taken at all as long as one thread alone calls.
//
// Who waits looks again and again, and would keep it from who has something to do, since a mutex goes to whoever asks
// at the right moment:
//
//   call   try, else waiters += wants_lock, sleeps for the lock, waiters -= wants_lock
//   poll   tries only while nobody wants it
//
// While a rank is in the host, a progress thread may act for it (progress_thread.hpp), so all take the lock.
#pragma once
#include <atomic>
#include <mutex>

namespace nearfield::messages {

class MessengerLock {
 public:
  bool threaded() const { return threaded_.load(std::memory_order_relaxed); }
  // The program's threads call at the same time: for good, not only while the rank is in the host.
  bool program_threads() const { return program_threads_.load(std::memory_order_relaxed); }
  void set_program_threads() {
    program_threads_.store(true, std::memory_order_relaxed);
    threaded_.store(true, std::memory_order_relaxed);
  }
  void enter_host() {
    if (!program_threads()) threaded_.store(true, std::memory_order_relaxed);
  }
  // Returns when the progress thread is through with its step: it looks whether we are back when it has the lock.
  void leave_host() {
    if (program_threads()) return;
    { const std::lock_guard wait(mutex_); }
    threaded_.store(false, std::memory_order_relaxed);
  }
  // pre: it is held. Whether by a thread that is none of the program's, and may not call the host.
  bool by_progress_thread() const { return by_progress_thread_; }

  // The lock as one call holds it.
  class Guard {
   public:
    explicit Guard(MessengerLock& lock) : lock_(lock), threaded_(lock.threaded()) {
      if (threaded_) get();
    }
    Guard(MessengerLock& lock, std::try_to_lock_t) : lock_(lock), threaded_(lock.threaded()) {
      if (threaded_) owns_ = lock.waiters_.load(std::memory_order_relaxed) < wants_lock && lock.mutex_.try_lock();
    }
    // By a progress thread, which keeps it until the end.
    enum Throughout { throughout };
    Guard(MessengerLock& lock, Throughout) : lock_(lock), threaded_(true), keeps_(true) { lock.mutex_.lock(); }
    ~Guard() {
      if (by_progress_thread_) lock_.by_progress_thread_ = false;
      if (threaded_ && owns_) lock_.mutex_.unlock();
    }
    Guard(const Guard&) = delete;
    bool owns() const { return owns_; }
    // pre: owns().
    void set_by_progress_thread() { lock_.by_progress_thread_ = by_progress_thread_ = true; }
    // While bytes are copied: the request in question is marked busy and nobody else touches it.
    void let_go() {
      if (!threaded_ || keeps_) return;
      if (by_progress_thread_) lock_.by_progress_thread_ = false;
      lock_.mutex_.unlock();
    }
    void take() {
      if (!threaded_ || keeps_) return;
      get();
      if (by_progress_thread_) lock_.by_progress_thread_ = true;
    }

   private:
    void get() {
      if (lock_.mutex_.try_lock()) return;
      lock_.waiters_.fetch_add(wants_lock, std::memory_order_relaxed);
      lock_.mutex_.lock();
      lock_.waiters_.fetch_sub(wants_lock, std::memory_order_relaxed);
    }
    MessengerLock& lock_;
    const bool threaded_, keeps_ = false;
    bool owns_ = true, by_progress_thread_ = false;
  };

  // A thread of the program that waits for messages. Where there are several of a rank they share its CPUs: each gives
  // its CPU away after every look, or it would keep it from the one that has something to do.
  class Waiting {
   public:
    explicit Waiting(MessengerLock& lock) : lock_(lock), counts_(lock.program_threads()) {
      if (counts_) lock_.waiters_.fetch_add(1, std::memory_order_relaxed);
    }
    ~Waiting() {
      if (counts_) lock_.waiters_.fetch_sub(1, std::memory_order_relaxed);
    }
    Waiting(const Waiting&) = delete;
    bool several() const { return counts_ && lock_.waiters_.load(std::memory_order_relaxed) % wants_lock > 1; }

   private:
    MessengerLock& lock_;
    const bool counts_;
  };

 private:
  static constexpr int wants_lock = 1 << 16;  // in waiters_, above the number of threads that wait
  std::mutex mutex_;
  std::atomic<bool> threaded_{false}, program_threads_{false};
  std::atomic<int> waiters_{0};
  bool by_progress_thread_ = false;  // under the lock
};

using Guard = MessengerLock::Guard;

}  // namespace nearfield::messages
