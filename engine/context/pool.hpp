// All contexts of a team: the first, and further ones for operations that may overlap others. Each has a queue
// (task_queue.hpp).
//
//   issue()    gives the operation the next number n, and puts it into the queue of context n % further. Since all
//              members issue the same calls in the same order, n is the same on all of them, without communication
//
// The first operation that a member issues allocates its control blocks of further contexts. The member publishes their
// position (MemberControlBlock::contexts). The first body in each queue waits until all members have published theirs.
//
// Persistent operations start in any order, which differs between members. So each has a context of its own, which the
// members reserve together:
//
//   reserve()  each member publishes, by a slot of the first context, which reserved contexts it has let go of. The
//              lowest one that all members name is reused
//              if there is none, each member publishes the position of new control blocks, 0 if it has no memory. If
//              one publishes 0, no member uses the new ones
//
// A member lets go of a context when its operation is complete; from then on it does not access the context's words.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "engine/base/function_ref.hpp"
#include "engine/context/task_queue.hpp"

namespace nearfield::context {

inline constexpr unsigned further = 2;  // contexts beside the first

class ContextPool final : public team::TeamState {
 public:
  explicit ContextPool(Team& team) : first(team, 0), team_(team) {}
  ~ContextPool() override;
  ContextPool(const ContextPool&) = delete;

  // Local: issues the next operation. Throws OutOfMemory; then it was not issued, and members disagree on the numbers
  // of calls (Team::break_off).
  void issue(Task& task);
  // Collective, as a call of the first context. Returns the queue of a context for one persistent operation, of the
  // same number on all members; nullptr, on all members: one of them has no memory. Throws what waits throw.
  TaskQueue* reserve();
  // Local. pre: no operation that we have issued to it is under way.
  void let_go(const TaskQueue& reserved);
  // Waits until no operation of issue() is under way. It ends, since bodies notice dead members and all members have
  // issued the same. It does not wait for persistent operations: others may start theirs only after we return.
  void finish() override;

  TaskQueue first;

 private:
  // Finds all members' control blocks of a further context.
  struct Join final : Task {
    explicit Join(ContextPool& pool) : pool(pool) {}
    void run(CollectiveContext& context) override;
    ContextPool& pool;
  };
  // A context that is reserved, or was, and the offset of our control blocks.
  struct Reserved {
    std::unique_ptr<TaskQueue> queue;
    std::size_t words = 0;
    bool in_use = false;
  };
  void make();
  std::unique_ptr<TaskQueue> make_queue(unsigned number, Task* join);
  void meet(std::span<const std::uint64_t> mine,
            FunctionRef<void(int member, std::size_t i, std::uint64_t theirs)> see);

  Team& team_;
  Join join_{*this};
  std::uint64_t issued_ = 0;
  std::size_t words_ = 0;  // offset of our control blocks in our segment, 0: none yet
  std::unique_ptr<TaskQueue> queue_[further];
  std::vector<Reserved> reserved_;  // under the runner's lock
};

}  // namespace nearfield::context
