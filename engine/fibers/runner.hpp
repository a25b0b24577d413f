// Runs bodies of operations that may overlap others (context/task_queue.hpp), in any thread that waits, tests or starts
// an operation.
//
// A thread that sleeps while bodies are suspended is woken by the members that they await:
//
//   sleeper, in WakeWord::sleep                  member that a body awaits (Waits::wake_suspended)
//   seen = wake word
//   each body's `awaits` = member, word, value   its word = value (release)
//   asleep_on = offset of wake word (release)    asleep_on != 0 and the body awaits this value (acquire) ?
//   polls all bodies once more                     wake word += 1, futex wake
//   futex wait while wake word == seen,
//   bounded time; asleep_on = 0
//
// `awaits` is in the control block of the context, asleep_on in the header of the process. There is no fence between
// the store of the word and the load of asleep_on, so the member may miss the sleeper, which then sleeps to the end of
// its short timeout.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/fibers/fiber.hpp"
#include "engine/memory/segment.hpp"
#include "engine/waiting/wait.hpp"

namespace nearfield::fibers {

// An object whose body may be suspended.
struct Lane {
  virtual void run() = 0;  // the body; must not throw
  virtual void publish_awaited() {}
  // Called after the body has ended, by the thread that ran its last part, without the lock of the runner, so that it
  // may start other lanes. It may destroy the lane.
  virtual void afterwards() {}
  Fiber* fiber = nullptr;       // while the body is under way
  bool has_afterwards = false;  // afterwards() is to be called; false: the lane may be destroyed as its body ends
  bool unattended = false;      // no call waits for it: Runner::unattended()

 protected:
  ~Lane() = default;
};

class Runner final : public waiting::Source {
 public:
  // `asleep_on`: word that publishes the offset in `segment` of the wake word on which this process sleeps.
  Runner(memory::Segment& segment, Atomic<std::uint64_t>& asleep_on) : segment_(segment), asleep_on_(asleep_on) {}
  Runner(const Runner&) = delete;

  // Allocates stacks until there are that many, or memory is short. Operations can then begin even if memory is short
  // later. Untouched pages take no memory.
  void keep(std::size_t stacks);

  // Guards all lanes and what their bodies use, whichever thread runs them.
  std::mutex& mutex() { return mutex_; }
  // Runs the lane's body up to its first suspension; if it has ended the caller calls afterwards(). Throws
  // std::bad_alloc, and then nothing has been done. pre: the lock is held, and the lane is not under way.
  void start(Lane& lane);
  // Returns whether any unattended lane is under way, its afterwards() included.
  bool unattended() const { return unattended_.load(std::memory_order_acquire) != 0; }  // SYNC: unattended

  // ---- Source
  bool poll() override { return poll(1); }
  bool busy() override { return count_.load(std::memory_order_relaxed) != 0; }
  void asleep_on(waiting::WakeWord* word) override;
  // Called by bodies whose wait has ended.
  void note_progress() { moved_ = true; }
  // As poll(), for a thread that waits for a body. If it has a CPU of its own and there is one body only, the body
  // looks at its flag as often as a blocking call would.
  bool poll_patiently(const waiting::Policy& policy) { return poll(policy.oversubscribed ? 1 : 64); }
  // Returns how often a resumed body looks at its flag before it is suspended again.
  unsigned looks() const { return looks_; }

 private:
  bool poll(unsigned looks) { return busy() && poll_all(looks); }
  bool poll_all(unsigned looks);
  void add_stack();
  memory::Segment& segment_;
  Atomic<std::uint64_t>& asleep_on_;
  std::mutex mutex_;
  std::atomic<std::size_t> count_{0};  // size of lanes_; without the lock it only tells whether there are any lanes
  std::atomic<int> unattended_{0};     // number of unattended lanes under way
  std::vector<Lane*> lanes_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  bool moved_ = false;
  unsigned looks_ = 1;
};

}  // namespace nearfield::fibers
