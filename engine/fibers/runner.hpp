// Who runs the bodies of operations that may overlap others (context/pool.hpp): whoever waits, tests or issues.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/fibers/fiber.hpp"
#include "engine/memory/segment.hpp"
#include "engine/waiting/progress.hpp"

namespace nearfield::fibers {

// Something whose body may be suspended.
struct Lane {
  virtual void run() = 0;  // the body; must not throw
  virtual void tell_awaited() {}
  // After the body has ended, by whoever ran its last part, who does not hold the runner's lock: what issues others.
  virtual void afterwards() {}
  Fiber* fiber = nullptr;       // while it is under way
  bool has_afterwards = false;  // else nobody looks at the lane again
  Lane* next = nullptr;         // of those that have ended and have one

 protected:
  ~Lane() = default;
};

class Runner final : public waiting::Source {
 public:
  // `asleep_on`: where peers learn on which word of `segment` this process sleeps.
  Runner(memory::Segment& segment, std::atomic<std::uint64_t>& asleep_on) : segment_(segment), told_(asleep_on) {}
  Runner(const Runner&) = delete;

  // Makes so many stacks ahead, so that operations begin where there is no memory for one later; fewer where there is
  // none now. Pages that are never touched cost nothing.
  void keep(std::size_t stacks);

  // Guards all lanes and what their bodies use, whichever thread runs them.
  std::mutex& mutex() { return mutex_; }
  // Runs the lane's body up to its first suspension; afterwards() is the caller's to call if it has ended. Throws
  // std::bad_alloc, and then nothing has been done. pre: the lock is held, and the lane is not under way.
  void start(Lane& lane);

  // A stack for a body that the caller runs, and back. Throws std::bad_alloc.
  Fiber& take_stack();
  void put_back(Fiber& fiber);
  // Goes on with what the caller has begun on such a stack, and puts that back when the body has ended.
  void take_over(Lane& lane, Fiber& fiber);

  // ---- Source
  bool poll() override { return count_.load(std::memory_order_relaxed) != 0 && poll_all(); }
  bool busy() override { return count_.load(std::memory_order_relaxed) != 0; }
  void asleep_on(Atomic<std::uint32_t>* word) override;
  // By bodies: what they were suspended for has come.
  void note_progress() { moved_ = true; }
  // How often one looks before others have a turn.
  unsigned looks() const { return looks_; }
  // While the calling thread waits for what a body does, and has a CPU of its own: a single one looks as often as a
  // blocking call would.
  struct Patience {
    explicit Patience(Runner& runner) : runner(runner) { runner.patient_.store(true, std::memory_order_relaxed); }
    ~Patience() { runner.patient_.store(false, std::memory_order_relaxed); }
    Runner& runner;
  };

 private:
  bool poll_all();
  void add_stack();
  memory::Segment& segment_;
  std::atomic<std::uint64_t>& told_;
  std::mutex mutex_;
  std::atomic<std::size_t> count_{0};  // of lanes_; without the lock only whether there are any
  std::vector<Lane*> lanes_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  bool moved_ = false;
  unsigned looks_ = 1;
  std::atomic<bool> patient_{false};
};

}  // namespace nearfield::fibers
