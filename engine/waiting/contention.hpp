// Detects whether others want this process's CPUs; one detector for all waits of the process.
//
// The kernel counts how long a thread has wanted a CPU and has not got one (its run delay). A wait asks for this number
// when its spin has ended in vain or was interrupted, and compares the growth since the last question with the time
// that has passed. For each sleep it subtracts the time in which an idle CPU wakes up.
//
// Contention ends when no question has found any for a while (`hold`). `hold` doubles when contention begins again soon
// after its end. All words are hints of one process, written by any of its threads that waits: no other memory is
// ordered by them, and concurrent writes lose one observation at most.
#pragma once
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace nearfield::waiting {

class Contention {
 public:
  // All in nanoseconds.
  static constexpr std::uint64_t interrupted = 50'000;  // the shortest gap in a spin that counts as an interruption
  static constexpr std::uint64_t delayed = 50'000;      // run delay that kernel threads cause between two questions
  static constexpr std::uint64_t wake = 100'000;        // run delay that a sleep adds, since an idle CPU has to wake up
  static constexpr std::uint64_t part = 16;             // 1 / part of the time that has passed has to be delay
  static constexpr std::uint64_t first_hold = 4'000'000, longest_hold = 256'000'000;
  static constexpr std::uint64_t forgotten = 1'000'000'000;      // without contention; then `hold` is first_hold
  static constexpr std::uint64_t between_questions = 1'000'000;  // to the kernel, each of which costs microseconds

  // How many nanoseconds the calling thread has waited for a CPU so far.
  using Delay = std::uint64_t (*)();
  // Called when contention has begun or ended.
  using Report = void (*)(bool begun, const Contention& contention, std::uint64_t now);
  constexpr explicit Contention(Delay ask, Report report = nullptr) : ask_(ask), report_(report) {}

  // Returns whether there is contention, without asking the kernel.
  bool there(std::uint64_t now) {
    if (!there_.load(relaxed) || now < until_.load(relaxed)) [[likely]]
      return there_.load(relaxed);
    if (!there_.exchange(false, relaxed)) return false;  // another thread has ended it
    const std::uint64_t until = until_.load(relaxed), since = since_.load(relaxed);
    left_.store(until, relaxed);
    // Another thread may just have begun.
    if (until > since) lasted_.store(lasted_.load(relaxed) + (until - since), relaxed);
    if (report_) report_(false, *this, now);
    return false;
  }
  // Asks the kernel, unless the last question was recent.
  bool look(std::uint64_t now) { return now < next_question_.load(relaxed) ? there(now) : ask(now); }
  // The same after a spin was interrupted for `took` ns: asks the kernel if that is long.
  bool after_gap(std::uint64_t now, std::uint64_t took) { return took < interrupted ? there(now) : ask(now); }
  // A sleep of this thread has ended.
  void has_slept() { sleeps_.store(sleeps_.load(relaxed) + 1, relaxed); }

  // How often contention has begun, and how many nanoseconds it has lasted altogether.
  std::uint64_t begun() const { return begun_.load(relaxed); }
  std::uint64_t lasted(std::uint64_t now) const {
    const std::uint64_t before = lasted_.load(relaxed), since = since_.load(relaxed);
    const std::uint64_t until = std::min(now, until_.load(relaxed));
    return !there_.load(relaxed) || until < since ? before : before + (until - since);
  }
  // Whether there was any from `then` on.
  bool any_since(std::uint64_t then) const { return there_.load(relaxed) || (begun() && left_.load(relaxed) >= then); }

 private:
  static constexpr auto relaxed = std::memory_order_relaxed;

  bool ask(std::uint64_t now) {
    next_question_.store(now + between_questions, relaxed);
    const pthread_t self = pthread_self();
    const std::uint64_t delay = ask_(), before = delay_.exchange(delay, relaxed);
    const std::uint64_t passed = now - asked_.exchange(now, relaxed);
    const std::uint64_t allowed = std::max(delayed, passed / part) + wake * sleeps_.exchange(0, relaxed);
    // The delay is of one thread, so a thread that has not asked the last question only leaves its own for comparison.
    if (asked_by_.exchange(self, relaxed) != self || delay < before + allowed) return there(now);
    const bool begins = !there(now);
    there_.store(true, relaxed);
    if (begins) {
      const std::uint64_t alone = now - left_.load(relaxed), hold = hold_.load(relaxed);
      if (alone > forgotten) hold_.store(first_hold, relaxed);
      else if (alone < 8 * hold) hold_.store(std::min(2 * hold, longest_hold), relaxed);
      begun_.store(begun_.load(relaxed) + 1, relaxed);
      since_.store(now, relaxed);
    }
    until_.store(now + hold_.load(relaxed), relaxed);
    if (begins && report_) report_(true, *this, now);
    return true;
  }

  const Delay ask_;
  const Report report_;
  std::atomic<bool> there_{false};
  std::atomic<std::uint64_t> until_{0}, left_{0}, hold_{first_hold}, next_question_{0}, begun_{0};
  std::atomic<std::uint64_t> since_{0}, lasted_{0};             // begin of the present contention; length of others
  std::atomic<std::uint64_t> asked_{0}, delay_{0}, sleeps_{0};  // time and delay at the last question; sleeps since
  std::atomic<pthread_t> asked_by_{};
};

// Returns the run delay of the calling thread in ns; 0: the kernel does not tell.
std::uint64_t delay_of_this_thread() noexcept;
void log_contention(bool begun, const Contention& contention, std::uint64_t now) noexcept;

}  // namespace nearfield::waiting
