// Whether somebody else wants this process's CPUs: one detector for all of its waits.
//
//   none      waits spin first. Leaves for `yielding` when a spin was interrupted for longer than any interrupt takes
//             and the kernel says that it took the CPU away; for `busy` when a yield lasted longer than who waits runs
//   yielding  others give the CPU back soon, as ranks do that wait themselves: waits yield at once
//   busy      others compute, and a yield costs what the scheduler gives them at a time: waits sleep almost at once,
//             since who is woken gets the CPU back at once, having used less than its part
//
// Each state ends when the kernel has not taken the CPU away for a while (`hold`), which doubles each time that it was
// left too early. All words are hints of one process, written by whichever of its threads waits: nothing is ordered by
// them, and what two threads write at once is off by one observation.
#pragma once
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace nearfield::waiting {

class Company {
 public:
  enum class Kind : std::uint8_t { none, yielding, busy };
  // All in nanoseconds.
  static constexpr std::uint64_t interrupted = 50'000;  // between two looks of a spin, which take less than 100
  static constexpr std::uint64_t computed = 200'000;    // that a yield lasts: whoever waits has yielded before
  static constexpr std::uint64_t first_hold = 4'000'000, longest_hold = 256'000'000;
  static constexpr std::uint64_t forgotten = 1'000'000'000;      // after that long without company, holds begin anew
  static constexpr std::uint64_t between_questions = 1'000'000;  // to the kernel

  // How often the calling thread lost its CPU against its will (getrusage).
  using Preemptions = std::uint64_t (*)();
  // It has begun as `kind`, or has ended (none).
  using Report = void (*)(Kind kind, const Company& company, std::uint64_t now);
  constexpr explicit Company(Preemptions ask, Report report = nullptr) : ask_(ask), report_(report) {}

  Kind kind(std::uint64_t now) {
    const Kind kind = kind_.load(relaxed);
    if (kind == Kind::none || now < until_.load(relaxed)) [[likely]]
      return kind;
    if (kind_.exchange(Kind::none, relaxed) == Kind::none) return Kind::none;  // another thread's
    const std::uint64_t until = until_.load(relaxed), since = since_.load(relaxed);
    left_.store(until, relaxed);
    // Another thread may just have begun.
    if (until > since) lasted_.store(lasted_.load(relaxed) + (until - since), relaxed);
    if (report_) report_(Kind::none, *this, now);
    return Kind::none;
  }
  // A spin was interrupted for `took`.
  Kind after_gap(std::uint64_t now, std::uint64_t took) {
    if (took < interrupted || !preempted()) return kind(now);
    return enter(now, std::max(kind(now), Kind::yielding));
  }
  Kind after_yield(std::uint64_t now, std::uint64_t took) {
    if (took < interrupted) return kind(now);
    return enter(now, took < computed ? std::max(kind(now), Kind::yielding) : Kind::busy);
  }
  // Now and then while it is in company: whether that goes on.
  void look(std::uint64_t now) {
    if (kind_.load(relaxed) == Kind::none || now < next_question_.load(relaxed)) return;
    next_question_.store(now + between_questions, relaxed);
    if (preempted()) until_.store(std::max(until_.load(relaxed), now + hold_.load(relaxed)), relaxed);
  }
  // How often it began, and how long it lasted altogether.
  std::uint64_t begun() const { return begun_.load(relaxed); }
  std::uint64_t lasted(std::uint64_t now) const {
    const std::uint64_t before = lasted_.load(relaxed), since = since_.load(relaxed);
    const std::uint64_t until = std::min(now, until_.load(relaxed));
    return kind_.load(relaxed) == Kind::none || until < since ? before : before + (until - since);
  }
  // Whether there was any from `then` on.
  bool any_since(std::uint64_t then) const {
    return kind_.load(relaxed) != Kind::none || (begun() && left_.load(relaxed) >= then);
  }

 private:
  static constexpr auto relaxed = std::memory_order_relaxed;

  Kind enter(std::uint64_t now, Kind kind) {
    const bool begins = kind_.exchange(kind, relaxed) == Kind::none;
    if (begins) {
      const std::uint64_t alone = now - left_.load(relaxed), hold = hold_.load(relaxed);
      if (alone > forgotten) hold_.store(first_hold, relaxed);
      else if (alone < 8 * hold) hold_.store(std::min(2 * hold, longest_hold), relaxed);
      begun_.store(begun_.load(relaxed) + 1, relaxed);
      since_.store(now, relaxed);
    }
    until_.store(now + hold_.load(relaxed), relaxed);
    if (begins && report_) report_(kind, *this, now);
    return kind;
  }
  // Whether this thread lost its CPU since it last asked. Threads that take turns get no answer at first.
  bool preempted() {
    const pthread_t self = pthread_self();
    const std::uint64_t times = ask_();
    const bool same = asked_by_.exchange(self, relaxed) == self;
    return same & (seen_.exchange(times, relaxed) < times);
  }

  const Preemptions ask_;
  const Report report_;
  std::atomic<Kind> kind_{Kind::none};
  std::atomic<std::uint64_t> until_{0}, left_{0}, hold_{first_hold}, next_question_{0}, begun_{0};
  std::atomic<std::uint64_t> since_{0}, lasted_{0};  // of the one that goes on; of those that have ended
  std::atomic<std::uint64_t> seen_{0};
  std::atomic<pthread_t> asked_by_{};
};

std::uint64_t preemptions_of_this_thread() noexcept;
void log_company(Company::Kind kind, const Company& company, std::uint64_t now) noexcept;

}  // namespace nearfield::waiting
