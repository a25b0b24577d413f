// The queue of one context: its operations in order. It lets a call go on while its caller does something else.
//
//   issue()    the task begins, if nothing is under way in the context; else it follows those before it
//   body       runs on a fiber until a task has to wait (Waits::suspend); the runner (fibers/runner.hpp)
//              resumes it in whatever else the process does
//   complete   error() is valid; the task's owner may destroy it or issue it again, and use the context itself
//
//   non-blocking calls      in the queues of further contexts, by turns (pool.hpp)
//   persistent operations   each in a queue of its own, which is reserved (pool.hpp)
//   calls that are left     in the queue of the first context (choosing/leaving.hpp). Blocking calls run
//                           in that context without the queue, once all tasks in it are complete
//
// Threads: whoever runs tasks or changes the queue holds the runner's lock.
#pragma once
#include <atomic>
#include <exception>

#include "engine/context/context.hpp"
#include "engine/fibers/runner.hpp"

namespace nearfield::context {

// One call. It must exist until it is complete, and may then be issued again.
class Task {
 public:
  bool complete() const { return completed_.load(std::memory_order_acquire); }  // SYNC: completed
  // pre: complete(). Returns why it failed; nullptr: it has not.
  const std::exception_ptr& error() const { return error_; }

 protected:
  Task() = default;
  ~Task() = default;
  // The body. All members run the same one for the same number.
  virtual void run(CollectiveContext& context) = 0;

 private:
  friend class TaskQueue;
  std::atomic<bool> completed_{false};
  std::exception_ptr error_;
  Task* next_ = nullptr;
};

class TaskQueue final : fibers::Lane {
 public:
  // `join`: runs before each task until it has succeeded once.
  TaskQueue(Team& team, unsigned number, Task* join = nullptr) : context(team, number), join_(join) {
    unattended = number == 0;
  }
  TaskQueue(const TaskQueue&) = delete;

  // Local. Throws OutOfMemory; then it was not issued.
  void issue(Task& task);
  bool under_way();
  // Called when the context's user goes away. Whoever completes the last task calls then.left(), which may destroy us.
  // False: no task is under way, and nobody calls it.
  bool outlive(team::TeamUser& then);

  CollectiveContext context;

 private:
  void run() override;
  void publish_awaited() override { context.waits.publish_awaited(); }
  void afterwards() override { then_->left(); }
  Task* join_;
  Task *first_ = nullptr, *last_ = nullptr;
  team::TeamUser* then_ = nullptr;
};

}  // namespace nearfield::context
