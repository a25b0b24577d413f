// A reader-writer ticket lock: members get it in the order in which they ask, and readers that follow each other share
// it (after Mellor-Crummey and Scott, "Scalable Reader-Writer Synchronization for Shared-Memory Multiprocessors", PPoPP
// 1991).
//
//   exclusive   ticket = tickets++       waits until turn.write == ticket   holds   turn = {ticket + 1, ticket + 1}
//   shared      ticket = tickets++       waits until turn.read == ticket    turn.read++   holds   turn.write++
//
// So turn.read - turn.write readers are inside. If a reader that holds other locks queued behind a waiting writer, it
// could close a cycle: that writer waits for a reader inside, which waits elsewhere behind a writer that waits for us.
// So such a reader is urgent: it takes no ticket, and comes in by the first of
//
//   free        no waiters:  tickets == turn.read -> tickets + 1 (compare-and-swap), then like any reader
//   let in      urgent.waiting += 1      the next writer that leaves:  n = urgent.waiting
//                                          urgent = {phase + 1, 0 waiting}, then turn = {ticket + 1 - n, ticket + 1}
//               urgent.phase has changed and readers are inside: the caller is one of them
//   overtakes   readers have been inside for as long as its patience:  turn.write--, as if one of them had not left
//
// A reader that has come in by itself takes back urgent.waiting - 1; if a writer has let it in meanwhile, it leaves
// that second place.
//
// No cycle lasts: a writer inside is not waiting for this lock, and patience ends. Nobody starves: an urgent reader
// waits for one writer, or few (a writer that is just leaving may miss it, the next one does not), as in phase-fair
// locks (Brandenburg and Anderson, 2010). A writer waits for those before it, for the readers that have been let in, of
// which no more come before the next writer, and for readers that overtake. Each overtaking restarts and doubles the
// patience of all urgent readers. As soon as it is longer than readers stay, all have left before the next one may
// overtake, and the writer is in. That holds for loops of lock_all as well, where only the first target has a ticket.
// Patience is bounded (Patience), so that cycles end soon. So readers that always overlap and stay longer than the
// bound keep a writer out, as they do with the hosts.
//
// Callers wait and wake each other (Window::acquire, Window::ring_next). Zero bytes are a free lock.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>

#include "engine/base/atomic.hpp"

namespace nearfield::windows {

// Tickets whose turn it is: `write` of a writer, `read` of a reader. Both wrap.
struct Turn {
  std::uint32_t write = 0, read = 0;
  bool concerns(std::uint32_t ticket) const { return ticket == write || ticket == read; }
  bool has_readers() const { return write != read; }
};

class Lock {
 public:
  // Publishes the caller's earlier stores to all that ask later.
  std::uint32_t ask() { return tickets_.fetch_add(1, std::memory_order_acq_rel); }  // SYNC: lock-ticket
  bool admits(std::uint32_t ticket, bool exclusive) const {
    const Turn turn = of(turn_.load(std::memory_order_acquire));  // SYNC: lock-turn
    return (exclusive ? turn.write : turn.read) == ticket;
  }
  // pre: the caller is a reader and admitted. Admits the next reader. Returns the new turn.
  Turn enter() {
    return change([](Turn turn) { return Turn{turn.write, turn.read + 1}; });
  }
  // Returns the new turn; where a writer has left, readers inside are urgent ones. `fences`: for a writer, a full fence
  // after its store, so that the caller then misses no sleeper.
  Turn leave(bool exclusive, bool fences) {
    if (!exclusive) return change([](Turn turn) { return Turn{turn.write + 1, turn.read}; });
    // Nobody else changes it now.
    const std::uint32_t ticket = of(turn_.load(std::memory_order_relaxed)).write;
    Turn next{ticket + 1, ticket + 1};
    if (urgent_.load(std::memory_order_relaxed) % one_phase != 0) [[unlikely]] {
      next.write -= begin_phase();
    }
    if (fences) turn_.exchange(word_of(next), std::memory_order_seq_cst);  // SYNC: lock-turn
    else turn_.store(word_of(next), std::memory_order_release);            // SYNC: lock-turn
    return next;
  }

  // Urgent readers; they leave like others.
  // Comes in if nobody waits by ticket and no writer is inside; returns the new turn. Publishes like ask().
  std::optional<Turn> enter_free() {
    return enter_free(of(turn_.load(std::memory_order_acquire)).read);  // SYNC: lock-turn
  }
  bool is_free(Turn turn) const { return tickets_.load(std::memory_order_relaxed) == turn.read; }
  // Registers the caller as a waiting urgent reader. Returns the phase, for come_in(). Publishes like ask().
  std::uint32_t call() { return urgent_.fetch_add(1, std::memory_order_acq_rel) / one_phase; }  // SYNC: lock-urgent
  // Tries all three ways to come in; returns the new turn. `overtakes(so far)`: returns whether the caller may
  // overtake, after so many overtakings since a writer has left.
  template <class Overtakes>
  std::optional<Turn> come_in(std::uint32_t phase, Overtakes overtakes) {
    for (;;) {
      const std::uint32_t urgent = urgent_.load(std::memory_order_acquire);  // SYNC: lock-urgent
      std::uint64_t seen = turn_.load(std::memory_order_acquire);            // SYNC: lock-turn
      Turn turn = of(seen);
      if (urgent / one_phase != phase && turn.has_readers()) return turn;
      if (is_free(turn)) {
        if (const auto entered = enter_free(turn.read)) return cease(phase, false), entered;
      } else {
        if (!turn.has_readers() || !overtakes(urgent % one_phase / one_overtaking)) return std::nullopt;
        --turn.write;
        // SYNC: lock-turn
        if (turn_.compare_exchange_strong(seen, word_of(turn), std::memory_order_acq_rel, std::memory_order_relaxed))
          return cease(phase, true), turn;
      }
    }
  }

  Atomic<std::uint32_t> sleepers;  // number of members that sleep for it; each counts itself

 private:
  static constexpr std::uint32_t one_overtaking = 1u << 16, one_phase = 1u << 24;
  static Turn of(std::uint64_t word) { return {std::uint32_t(word >> 32), std::uint32_t(word)}; }
  static std::uint64_t word_of(Turn turn) { return std::uint64_t(turn.write) << 32 | turn.read; }
  template <class Change>
  Turn change(Change becomes) {
    std::uint64_t seen = turn_.load(std::memory_order_relaxed);
    Turn next;
    do next = becomes(of(seen));
    // SYNC: lock-turn
    while (!turn_.compare_exchange_weak(seen, word_of(next), std::memory_order_acq_rel, std::memory_order_relaxed));
    return next;
  }
  std::optional<Turn> enter_free(std::uint32_t ticket) {
    if (tickets_.load(std::memory_order_relaxed) != ticket ||
        // SYNC: lock-ticket
        !tickets_.compare_exchange_strong(ticket, ticket + 1, std::memory_order_acq_rel, std::memory_order_relaxed))
      return std::nullopt;
    return enter();
  }
  // pre: the caller has come in by itself. Ends its waiting in `urgent`.
  void cease(std::uint32_t phase, bool overtook) {
    std::uint32_t seen = urgent_.load(std::memory_order_relaxed), next;
    do {
      if (seen / one_phase != phase) return void(leave(false, false));  // the place that a writer gave us
      const std::uint32_t times = seen % one_phase / one_overtaking;
      next = seen - 1;
      // The count saturates but must go on changing, since others look for changes.
      if (overtook) next += ((times == 255 ? 128 : times + 1) - times) * one_overtaking;
      // SYNC: lock-urgent
    } while (!urgent_.compare_exchange_weak(seen, next, std::memory_order_acq_rel, std::memory_order_relaxed));
  }
  // pre: the caller is a writer inside. Begins the next phase; returns how many urgent readers it lets in.
  [[gnu::noinline]] std::uint32_t begin_phase() {
    std::uint32_t seen = urgent_.load(std::memory_order_relaxed), waiting;
    do waiting = seen % one_overtaking;
    while (!urgent_.compare_exchange_weak(seen, (seen / one_phase + (waiting != 0)) * one_phase,
                                          std::memory_order_acq_rel, std::memory_order_relaxed));  // SYNC: lock-urgent
    return waiting;
  }
  Atomic<std::uint32_t> tickets_;  // any member
  Atomic<std::uint64_t> turn_;     // any member
  Atomic<std::uint32_t> urgent_;   // phase (8 bits), overtakings (8), waiting (16): any member
};

// The time for which an urgent reader lets waiting writers go first.
struct Patience {
  static constexpr std::uint64_t least = 100'000, most = least << 14;  // nanoseconds
  std::uint64_t since = 0;
  std::uint32_t overtakings = 0;
  // Returns whether it has ended at `now`, in nanoseconds, after so many overtakings.
  bool ends(std::uint32_t so_far, std::uint64_t now) {
    if (since == 0 || so_far != overtakings) since = now, overtakings = so_far;
    return now - since >= std::min(least << std::min(overtakings, 32u), most);
  }
};

}  // namespace nearfield::windows
