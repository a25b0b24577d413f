// Ranges of a process's segment that are private since a fork: mapped copy on write, so that parent and child do not
// see each other's stores. Peers would read the old contents, so no buffer in such a range is described to them.
#pragma once
#include <atomic>
#include <cstddef>
#include <iterator>
#include <map>
#include <mutex>

namespace nearfield::memory {

// Gives up after a second: a fork in a signal handler may have interrupted the holder of the lock.
bool lock_for_fork(std::mutex& mutex);

class Apart {
 public:
  // From here to end_fork() meets() waits. False: the lock cannot be had.
  bool begin_fork() {
    // SYNC: fork-begins; a buffer noted before a load that misses it is seen by the fork
    any_.store(true, std::memory_order_seq_cst);
    return lock_for_fork(mutex_);
  }
  // pre: between begin_fork() and end_fork().
  void add(std::size_t begin, std::size_t end) { ranges_[begin] = end; }
  void drop(std::size_t begin) { ranges_.erase(begin); }
  const std::map<std::size_t, std::size_t>& ranges() const { return ranges_; }
  void end_fork() {
    any_.store(!ranges_.empty(), std::memory_order_relaxed);
    mutex_.unlock();
  }

  bool meets(std::size_t begin, std::size_t end) {
    if (!any_.load(std::memory_order_seq_cst)) [[likely]]  // SYNC: fork-begins
      return false;
    const std::lock_guard lock(mutex_);
    const auto behind = ranges_.lower_bound(end);
    return behind != ranges_.begin() && std::prev(behind)->second > begin;
  }
  // Ranges within [begin, end) are no longer apart. Returns whether there were any.
  bool remove(std::size_t begin, std::size_t end) {
    if (!any_.load(std::memory_order_relaxed)) [[likely]]
      return false;
    const std::lock_guard lock(mutex_);
    const std::size_t before = ranges_.size();
    ranges_.erase(ranges_.lower_bound(begin), ranges_.lower_bound(end));
    any_.store(!ranges_.empty(), std::memory_order_relaxed);
    return ranges_.size() != before;
  }

 private:
  std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::map<std::size_t, std::size_t> ranges_;  // begin to end; each lies within one allocation
};

}  // namespace nearfield::memory
