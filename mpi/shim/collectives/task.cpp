#include "mpi/shim/collectives/task.hpp"

#include "mpi/shim/process/threads/per_thread.hpp"

namespace nearfield::mpi {
namespace {

// Of one length, which is enough for what teams carry. Others are the C library's.
class TaskMemory {
 public:
  static constexpr std::size_t each = 512;  // bytes

  TaskMemory() = default;
  TaskMemory(const TaskMemory&) = delete;
  ~TaskMemory() {
    while (first_) ::operator delete(take());
  }
  void* take() {
    if (!first_) return ::operator new(each);
    --count_;
    return std::exchange(first_, first_->next);
  }
  void put_back(void* memory) {
    if (count_ == most) return ::operator delete(memory);
    ++count_;
    first_ = new (memory) Free{first_};
  }

 private:
  static constexpr unsigned most = 64;
  struct Free {
    Free* next;
  };
  Free* first_ = nullptr;
  unsigned count_ = 0;
};
const PerThread<TaskMemory> task_memory;

}  // namespace

void* take_task_memory(std::size_t bytes) {
  return bytes > TaskMemory::each ? ::operator new(bytes) : task_memory->take();
}

void put_back_task_memory(void* memory, std::size_t bytes) {
  if (bytes > TaskMemory::each) ::operator delete(memory);
  else task_memory->put_back(memory);
}

}  // namespace nearfield::mpi
