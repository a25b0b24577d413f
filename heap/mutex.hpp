// The heap's lock: a futex word that holds the owner's thread id. Code that runs inside a call of the heap (a signal
// handler, a hook of mmap) sees from it that its own thread has the lock, and must not wait for it.
#pragma once
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace nearfield::heap {

class Mutex {
 public:
  void lock() {
    if (try_lock()) [[likely]]
      return;
    for (;;) {
      int now = word_.load(std::memory_order_relaxed);
      if (now == 0) {
        // With `waiters`, since other threads may sleep as well.
        // SYNC: heap-mutex
        if (word_.compare_exchange_strong(now, self() | waiters, std::memory_order_acquire)) return;
      } else if (now & waiters || word_.compare_exchange_strong(now, now | waiters, std::memory_order_relaxed)) {
        syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, now | waiters, nullptr, nullptr, 0);
      }
    }
  }
  bool try_lock() {
    int nobody = 0;
    return word_.compare_exchange_strong(nobody, self(), std::memory_order_acquire);  // SYNC: heap-mutex
  }
  void unlock() {
    if (word_.exchange(0, std::memory_order_release) & waiters)  // SYNC: heap-mutex
      syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
  bool mine() const { return (word_.load(std::memory_order_relaxed) & ~waiters) == self(); }
  // Returns whether this is a child of vfork: it runs in its parent's memory, on its parent's thread.
  static bool in_vfork() { return own_id != 0 && own_id != int(syscall(SYS_gettid)); }
  // For a forked child: its only thread is the one that held the lock, but it has another thread id now.
  void inherit() {
    own_id = 0;
    word_.store(self(), std::memory_order_relaxed);
  }

 private:
  static constexpr int waiters = 1 << 30;
  static int self() {
    if (own_id == 0) [[unlikely]]
      own_id = int(syscall(SYS_gettid));
    return own_id;
  }
  constinit static thread_local int own_id;
  std::atomic<int> word_{0};  // 0, or the owner's id, with `waiters` where threads sleep
};

constinit inline thread_local int Mutex::own_id = 0;

}  // namespace nearfield::heap
