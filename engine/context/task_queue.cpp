#include "engine/context/task_queue.hpp"

#include <utility>

#include "engine/base/out_of_memory.hpp"

namespace nearfield::context {

void TaskQueue::issue(Task& task) {
  Process& process = context.process();
  bool begins;
  {
    const std::lock_guard lock(process.runner().mutex());
    begins = !fiber;
    task.next_ = nullptr;
    task.error_ = nullptr;
    task.completed_.store(false, std::memory_order_relaxed);
    (begins ? first_ : last_->next_) = &task;
    last_ = &task;
    if (begins) process.runner().start(*this);
  }
  // A call that is left needs no thread in the background yet: whoever leaves it waits for it at first.
  if (begins && !unattended && process.runner().busy()) process.progress().wake_background();
}

void TaskQueue::run() {
  while (Task* const task = first_) {
    context.waits.suspend_by(fiber);
    try {
      if (join_) join_->run(context), join_ = nullptr;
      task->run(context);
    } catch (const OutOfMemory&) {
      context.team().break_off("out of memory");  // the others are in the same call
      task->error_ = std::current_exception();
    } catch (...) {
      task->error_ = std::current_exception();
    }
    context.calls.leave();
    context.waits.suspend_by(nullptr);
    first_ = task->next_;
    // SYNC: completed; from here on the owner may destroy the task, and after the last one use the context
    task->completed_.store(true, std::memory_order_release);
  }
}

bool TaskQueue::under_way() {
  const std::lock_guard lock(context.process().runner().mutex());
  return fiber != nullptr;
}

bool TaskQueue::outlive(team::TeamUser& then) {
  const std::lock_guard lock(context.process().runner().mutex());
  then_ = &then;
  return has_afterwards = fiber != nullptr;
}

}  // namespace nearfield::context
