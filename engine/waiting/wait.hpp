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
// Wakers issue no fence between the store that is awaited and their look for sleepers, since that would cost every call
// some nanoseconds for an event that is rare. So a waker may miss a sleeper while its store is still in its store
// buffer. That costs one bounded sleep, never a hang: every sleep has a time limit, because a sleeping rank also
// progresses the host MPI and looks for dead peers.
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

// Longest sleep, in ns, while this rank may be needed by something that does not ring it, such as the host.
inline constexpr std::uint64_t short_nap = 100'000;
// Longest sleep after `idle` ns without progress, while a source is busy: its peers ring this rank as a rule.
inline constexpr std::uint64_t nap_in_vain(std::uint64_t idle) {
  return std::clamp<std::uint64_t>(idle / 64, short_nap, 2'000'000);
}
// Nanoseconds between two inspections of a wait, which look for dead peers and stalls.
inline constexpr std::uint64_t between_inspections = 50'000'000;

struct Policy {
  bool oversubscribed = false;  // more ranks than CPUs
  bool may_sleep = true;
  std::uint32_t spins = 4000;  // rounds of pause before the first yield
  struct Patience {            // what comes before the first sleep:
    std::uint32_t yields;      // number of yields in vain,
    std::uint64_t awake;       // and nanoseconds since the wait began
  } patience{200, 1'000'000};
  // Patience while other processes want our CPUs. `contended_for_host`: of a wait whose flag asks the host (HostStep),
  // since messages of the host ring nobody.
  Patience contended{8, 10'000}, contended_for_host{8, 100'000};
  bool sleep_at_once = false;        // sleep before any yield: one call wakes all members (team::Process::tune)
  bool apart = false;                // several scheduling groups: a yield hands the CPU on late (team::Process::tune)
  Contention* contention = nullptr;  // tells whether other processes want our CPUs; nullptr: nobody asks
};

using nearfield::nanoseconds;

// Returns how many times pause() has to be called to fill `nanoseconds`. The first call measures a pause.
std::uint32_t pauses_in(std::uint64_t nanoseconds) noexcept;

// Looks at `flag()` up to `looks` times, with pauses between. Returns whether the flag held. Callers do this before a
// wait, whose looks cost more. pre: looks > 0.
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

// Who progresses the host. in_turns: the wait, now and then. by_flag: the flag, which asks the host, so every round is
// a turn, and sleeps are short. by_flag_seldom: the flag, but only now and then, after looks in vain.
enum class HostStep : std::uint8_t { in_turns, by_flag, by_flag_seldom };

// What a wait does besides looking at its flag. The functions belong to its caller; each may be null.
struct Waiter {
  Progress& others;
  FunctionRef<void(std::uint64_t elapsed_ns)> inspect = nullptr;  // looks for dead peers and stalls; may throw
  // The word on which it sleeps; null: nobody rings it. publish(true): it sleeps there; publish(false): it is awake.
  WakeWord* word = nullptr;
  FunctionRef<void(bool asleep)> publish = nullptr;
  FunctionRef<void()> also = nullptr;  // called in each turn; if there is one, sleeps are short
  HostStep host = HostStep::in_turns;
  bool one_event = false;                                            // one event ends the waits of all members
  std::uint64_t longest_nap = also ? short_nap : ~std::uint64_t{0};  // ns
  bool moved = false;  // the flag sets it: something has moved since the last turn

  // Progresses all sources, and the host unless the flag does. Returns whether anything moved.
  bool turn() {
    const bool any = host == HostStep::in_turns ? others.turn() : others.poll();
    if (also) also();
    return std::exchange(moved, false) || any;
  }
  // Returns whether every round of the wait is a turn, and all sleeps are short.
  bool eager() const { return host == HostStep::by_flag || (host == HostStep::in_turns && others.host_needs_us()); }
};

// Points to the sum of the nanoseconds of this thread's slow waits; nullptr: nobody asks (mpi/shim/recording).
inline thread_local std::uint64_t* waited = nullptr;

// Scope of a wait that began at `start`; nested waits count once.
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
    // A rank that the host needs spins on a CPU of its own, as waits of the host do, and yields seldom.
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
  // The member that ends a wait of all members does so by a read-modify-write. On x86-64 this is a fence, so no wake is
  // missed, and the first sleep may be long. (A short one programs a timer, which traps to the hypervisor on virtual
  // machines.)
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
