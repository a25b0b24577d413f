// Who runs the bodies of operations that may overlap others (tracks.hpp): whoever waits, tests or issues.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/memory/segment.hpp"
#include "engine/track/fiber.hpp"
#include "engine/waiting/progress.hpp"

namespace nearfield::team {

// Something whose body may be suspended.
struct Lane {
  virtual void run() = 0;  // the body; must not throw
  virtual void tell_awaited() = 0;
  Fiber* fiber = nullptr;  // while it is under way

 protected:
  ~Lane() = default;
};

class Runner final : public waiting::Source {
 public:
  explicit Runner(memory::Segment& segment) : segment_(segment) {}
  Runner(const Runner&) = delete;

  // Guards all lanes and what their bodies use, whichever thread runs them.
  std::mutex& mutex() { return mutex_; }
  // Runs the lane's body up to its first suspension. Throws std::bad_alloc, and then nothing has been done.
  // pre: the lock is held, and the lane is not under way.
  void start(Lane& lane);

  // ---- Source
  bool poll() override { return count_.load(std::memory_order_relaxed) != 0 && poll_all(); }
  bool busy() override { return count_.load(std::memory_order_relaxed) != 0; }
  void asleep_on(Atomic<std::uint32_t>* word) override;
  // By bodies: what they were suspended for has come.
  void note_progress() { moved_ = true; }

 private:
  bool poll_all();
  memory::Segment& segment_;
  std::mutex mutex_;
  std::atomic<std::size_t> count_{0};  // of lanes_; without the lock only whether there are any
  std::vector<Lane*> lanes_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  bool moved_ = false;
};

}  // namespace nearfield::team
