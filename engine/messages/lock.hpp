// The messenger's lock. It guards matching, channels and requests under way. It is released while bytes of large
// messages are copied, and not taken at all while only one thread calls.
//
// A thread that waits polls again and again, and would keep the mutex, which is not fair, from threads that have work:
//
//   call   tries to lock; else waiters += wants_lock, waits for the mutex, waiters -= wants_lock
//   poll   tries to lock, but only while no call wants the lock; else does nothing
//
// While a rank is in the host, a progress thread may act for it (progress_thread.hpp), so all threads take the lock.
// Bodies that the progress thread runs take the lock themselves, in each of their calls, and the rank may be back from
// the host before they are suspended:
//
//   progress thread, in RunningBodies   rank
//   mutex: in the host?                 in_host -= 1 (ProgressThread)
//            bodies_run = true          mutex: waits for the thread's step, or sees that bodies run
//   runs bodies, which use Guards       threaded = false
//   bodies_run = false (release)        takes the lock while threaded or bodies_run (acquire)
#pragma once
#include <atomic>
#include <mutex>

#include "engine/base/function_ref.hpp"

namespace nearfield::messages {

class MessengerLock {
 public:
  bool threaded() const {
    return threaded_.load(std::memory_order_relaxed) ||
           bodies_run_.load(std::memory_order_acquire);  // SYNC: bodies-run
  }
  // Whether several threads of the program may call at the same time. Unlike threaded(), this never ends.
  bool program_threads() const { return program_threads_.load(std::memory_order_relaxed); }
  void set_program_threads() {
    program_threads_.store(true, std::memory_order_relaxed);
    threaded_.store(true, std::memory_order_relaxed);
  }
  void enter_host() {
    if (!program_threads()) threaded_.store(true, std::memory_order_relaxed);
  }
  // Waits for the step of the progress thread, whose next one sees under the lock that the rank is back (in_host is 0).
  void leave_host() {
    if (program_threads()) return;
    { const std::lock_guard wait(mutex_); }
    threaded_.store(false, std::memory_order_relaxed);
  }

  // Scope in which a progress thread runs bodies for a rank in the host. there(): the rank was there when it began.
  class RunningBodies {
   public:
    RunningBodies(MessengerLock& lock, FunctionRef<bool()> rank_is_back) : lock_(lock) {
      const std::lock_guard hold(lock.mutex_);
      if (!rank_is_back()) lock.bodies_run_.store(there_ = true, std::memory_order_relaxed);
    }
    ~RunningBodies() {
      if (there_) lock_.bodies_run_.store(false, std::memory_order_release);  // SYNC: bodies-run
    }
    RunningBodies(const RunningBodies&) = delete;
    bool there() const { return there_; }

   private:
    MessengerLock& lock_;
    bool there_ = false;
  };

  // The lock as one call holds it.
  class Guard {
   public:
    explicit Guard(MessengerLock& lock) : lock_(lock), threaded_(lock.threaded()) {
      if (threaded_) get();
    }
    Guard(MessengerLock& lock, std::try_to_lock_t) : lock_(lock), threaded_(lock.threaded()) {
      if (threaded_) owns_ = lock.waiters_.load(std::memory_order_relaxed) < wants_lock && lock.mutex_.try_lock();
    }
    // For a progress thread: keeps the lock throughout, also between let_go() and take().
    enum Throughout { throughout };
    Guard(MessengerLock& lock, Throughout) : lock_(lock), threaded_(true), keeps_(true) { lock.mutex_.lock(); }
    ~Guard() {
      if (threaded_ && owns_) lock_.mutex_.unlock();
    }
    Guard(const Guard&) = delete;
    bool owns() const { return owns_; }
    // let_go() and take() enclose a copy of bytes. pre: the request is marked busy, so nobody else touches it.
    void let_go() {
      if (threaded_ && !keeps_) lock_.mutex_.unlock();
    }
    void take() {
      if (threaded_ && !keeps_) get();
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
    bool owns_ = true;
  };

  // Scope of a thread of the program that waits for messages. Several such threads share the rank's CPUs, so each
  // yields after every poll.
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
  static constexpr int wants_lock = 1 << 16;  // added to waiters_ by a call; below it: number of Waiting
  std::mutex mutex_;
  std::atomic<bool> threaded_{false}, program_threads_{false};  // by the program's threads
  std::atomic<bool> bodies_run_{false};                         // by the progress thread, under the mutex
  std::atomic<int> waiters_{0};
};

using Guard = MessengerLock::Guard;

}  // namespace nearfield::messages
