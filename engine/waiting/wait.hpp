// The one wait policy: spin, then yield, then sleep.
//
// A process learns at start-up whether its CPUs are shared by more ranks than there are CPUs ("oversubscribed").
// Oversubscribed ranks yield at once: a hand-off by yield costs about a microsecond, while a spinning rank burns the
// time slice that the awaited rank needs. Ranks with a CPU of their own spin for some microseconds first. After a
// bounded number of fruitless yields every rank sleeps on a wake word (wake_word.hpp), so that an idle rank's core is
// free.
//
// While it waits, a rank keeps everything else going (progress.hpp). It tells where it sleeps, so that a peer that is
// blocked on it for another reason can wake it (Source::asleep_on).
//
// Wakers issue no fence between what is awaited and their look for sleepers, since that would cost every call some
// nanoseconds for an event that is rare. A wake that is missed for that reason (what is awaited was still in the
// waker's store buffer) costs one bounded sleep, never a hang: every sleep has a time limit, because a sleeping rank
// also progresses the host MPI and looks for dead peers.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>

#include "engine/base/clock.hpp"
#include "engine/base/function_ref.hpp"
#include "engine/base/yield.hpp"
#include "engine/processor/processor.h"
#include "engine/waiting/contention.hpp"
#include "engine/waiting/progress.hpp"
#include "engine/waiting/wake_word.hpp"

namespace nearfield::waiting {

// Nanoseconds that a rank sleeps at most while others may need it for something else.
inline constexpr std::uint64_t short_nap = 100'000;
// The same where they ring as a rule, after nothing has moved for so long: a part of that time.
inline constexpr std::uint64_t nap_in_vain(std::uint64_t idle) {
  return std::clamp<std::uint64_t>(idle / 64, short_nap, 2'000'000);
}
// Between two looks for dead peers and stalls: what a program that hangs may do without noticing.
inline constexpr std::uint64_t between_inspections = 50'000'000;

struct Policy {
  bool oversubscribed = false;  // more ranks than CPUs
  bool may_sleep = true;
  std::uint32_t spins = 4000;  // rounds of pause before the first yield
  struct Patience {            // before the first sleep:
    std::uint32_t yields;      // fruitless ones,
    std::uint64_t awake;       // and nanoseconds
  } patience{200, 1'000'000};
  // The same while others want the CPUs; of waits for the host, whose messages ring nobody.
  Patience contended{8, 10'000}, contended_for_host{8, 100'000};
  bool sleep_at_once = false;        // where everybody waits for one event
  bool apart = false;                // yields hand the CPU on late (team::Process::tune)
  Contention* contention = nullptr;  // who tells whether CPUs that are its own are wanted by others
};

using nearfield::nanoseconds;

// How long `pause` has to be repeated to fill `nanoseconds`, measured once.
std::uint32_t pauses_in(std::uint64_t nanoseconds) noexcept;

// The looks before a wait, which are cheaper than its own: whether `flag()` holds in one of so many, with pauses
// between. pre: at least one.
template <class Flag, class Pause>
[[gnu::always_inline]] inline bool spin(unsigned looks, Flag&& flag, Pause&& pause) {
  while (!flag()) {
    if (--looks == 0) return false;
    pause();
  }
  return true;
}
template <class Flag>
[[gnu::always_inline]] inline bool spin(unsigned looks, Flag&& flag) {
  return spin(looks, flag, [] { processor::pause(); });
}

// Who progresses the host: the wait, when the host's turn comes; or what is waited for is the host's, and looking for
// it does, so that every round is a turn and nobody sleeps for long; or, once that has been in vain, only now and then.
enum class HostStep : std::uint8_t { in_turns, by_flag, by_flag_seldom };

// What a wait does besides looking at its flag. The functions belong to its caller; each may be null.
struct Waiter {
  Progress& others;
  FunctionRef<void(std::uint64_t elapsed_ns)> inspect = nullptr;  // looks for dead peers and stalls; may throw
  // The word that it sleeps on, null: nobody rings it; `publish` lets wakers know (WakeWord::sleep).
  WakeWord* word = nullptr;
  FunctionRef<void(bool asleep)> publish = nullptr;
  FunctionRef<void()> also = nullptr;  // in each turn; then naps are short
  HostStep host = HostStep::in_turns;
  bool one_event = false;                                            // all who wait now wait for the same
  std::uint64_t longest_nap = also ? short_nap : ~std::uint64_t{0};  // ns after which it must look around
  bool moved = false;  // the flag sets it: something has moved since the last turn

  // Whether anything moved.
  bool turn() {
    const bool any = host == HostStep::in_turns ? others.turn() : others.poll();
    if (also) also();
    return std::exchange(moved, false) || any;
  }
  // Every round is a turn, and nobody sleeps for long.
  bool eager() const { return host == HostStep::by_flag || (host == HostStep::in_turns && others.host_needs_us()); }
};

// Where the nanoseconds of this thread's slow waits are added up; nullptr: nobody asks (mpi/shim/recording).
inline thread_local std::uint64_t* waited = nullptr;

// From `start` to its end; waits inside of it count once.
class Waited {
 public:
  explicit Waited(std::uint64_t start) : start_(start), sum_(waited), before_(sum_ ? *sum_ : 0) {}
  ~Waited() {
    if (sum_) [[unlikely]]
      *sum_ = before_ + nanoseconds() - start_;
  }
  Waited(const Waited&) = delete;

 private:
  const std::uint64_t start_;
  std::uint64_t* const sum_;
  const std::uint64_t before_;
};

template <class Flag>
[[gnu::noinline]] void wait_slowly(const Policy& policy, Flag flag, Waiter& waiter) {
  const Progress::Attending attending(waiter.others);
  const std::uint64_t start = nanoseconds();
  const Waited counted(start);
  std::uint64_t next_inspection = start + 20'000'000;
  auto inspect = [&] {
    const std::uint64_t now = nanoseconds();
    if (now <= next_inspection) return;
    if (waiter.inspect) waiter.inspect(now - start);
    next_inspection = now + between_inspections;
  };
  bool eager = waiter.eager();
  Contention* const contention = policy.oversubscribed ? nullptr : policy.contention;
  bool contended = contention && contention->there(start);
  if (!policy.oversubscribed && !contended) {
    std::uint64_t looked = start;
    for (std::uint32_t i = 0; i < policy.spins; ++i) {
      processor::pause();
      if (flag()) return;
      if (eager || (i & 63) == 63) waiter.turn();
      if (contention && (i & 31) == 31) {
        const std::uint64_t now = nanoseconds();
        contended = now - start < Contention::interrupted    ? contention->there(now)
                    : now - looked < Contention::interrupted ? contention->look(now)
                                                             : contention->after_gap(now, now - looked);
        if (contended) break;
        looked = now;
      }
    }
  }
  const Policy::Patience& patience = waiter.host == HostStep::by_flag ? policy.contended_for_host : policy.contended;
  for (std::uint32_t i = 0; eager || !policy.sleep_at_once; ++i) {
    // With a CPU of its own a rank that the host needs waits as the host does.
    if (policy.oversubscribed || contended || !eager || (i & 15) == 15) yield();
    if (flag()) return;
    if (eager || (i & 15) == 15) {
      waiter.turn();
      if (flag()) return;
    }
    if ((i & 31) == 31) {
      inspect();
      eager = waiter.eager();
      if (contention) contended = contention->look(nanoseconds());
    }
    const Policy::Patience& most = contended ? patience : policy.patience;
    const bool tired = i >= most.yields && (!most.awake || nanoseconds() - start > most.awake);
    if (policy.may_sleep && tired && (!eager || policy.apart || contended)) break;
  }
  // Whoever ends a wait for everybody does so by a read-modify-write, which is a fence: no wake is missed. (A short
  // sleep also programs a timer, which is a trap to the hypervisor on virtual machines.)
  const std::uint64_t first_nap = waiter.one_event ? 20'000'000 : 500'000;
  std::uint64_t nap = first_nap, moved_last = nanoseconds();
  WakeWord unrung;
  WakeWord& word = waiter.word ? *waiter.word : unrung;
  const auto publish = [&](WakeWord* where) {
    if (where && waiter.publish) waiter.publish(true);
    waiter.others.asleep_on(where);
    if (!where && waiter.publish) waiter.publish(false);
  };
  for (;;) {
    bool moved = false, there = false;
    word.sleep(publish, [&]() -> std::uint64_t {
      moved = waiter.others.poll();
      there = flag();
      if (moved || there) return 0;
      const std::uint64_t for_others = waiter.eager()         ? short_nap
                                       : waiter.others.busy() ? nap_in_vain(nanoseconds() - moved_last)
                                                              : nap;
      return std::min({nap, waiter.longest_nap, for_others});
    });
    if (there || flag()) return;
    moved |= waiter.turn();
    nap = moved ? first_nap : nap < 8'000'000 ? 2 * nap : nap;
    if (moved) moved_last = nanoseconds();
    if (contention) {
      contention->has_slept();
      if (const std::uint64_t now = nanoseconds(); contention->there(now)) contention->look(now);
    }
    if (flag()) return;
    inspect();
  }
}
template <class Flag>
void wait_slowly(const Policy& policy, Flag flag, Waiter&& waiter) {
  wait_slowly(policy, flag, waiter);
}

}  // namespace nearfield::waiting
