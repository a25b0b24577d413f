// Operations that may overlap others: the further contexts of a team.
//
//   member     issue     the next number n, the same on all members, since all issue the same calls in the same order:
//                        it uses context n % further, without communication
//              body      runs on a fiber until it has to wait; the runner resumes it in other calls of this process
//              complete  when the body has ended; the next operation of the context begins
//
// The first operation that is issued allocates the control blocks of further contexts. A member publishes the position
// of its own (MemberControlBlock::contexts), and the body of that operation waits for all of them.
//
// Persistent operations start in any order, which differs between members. So each has a context of its own, which the
// members reserve together:
//
//   member     publishes, by a slot of the first context, which reserved contexts it has let go of; the lowest that all
//              members name is reused
//              if there is none, publishes the position of new control blocks; if a member has no memory (0), none
//              uses them
//
// A member lets go of a context once its operation is complete, so it does not access its words any more.
#pragma once
#include <atomic>
#include <exception>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/function_ref.hpp"
#include "engine/context/context.hpp"
#include "engine/fibers/runner.hpp"

namespace nearfield::context {

inline constexpr unsigned further = 2;  // contexts beside the first

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
  friend class ContextPool;
  std::atomic<bool> completed_{false};
  std::exception_ptr error_;
  Task* next_ = nullptr;
};

class ContextPool {
 public:
  explicit ContextPool(Team& team) : team_(team) {}
  ~ContextPool();
  ContextPool(const ContextPool&) = delete;

  // Local: begins the next operation, or queues it behind the one before it in its context. Throws std::bad_alloc; then
  // it was not issued, and members disagree on the numbers of calls (Team::break_off).
  void issue(Task& pending);
  // Collective, as a call of the first context. Returns the number of a context for one persistent operation; none, on
  // all members: one of them has no memory. Throws what waits throw.
  std::optional<unsigned> reserve();
  // Local: begins the next operation of that context. Throws std::bad_alloc as issue().
  void issue_to(unsigned reserved, Task& pending);
  // Local. pre: no operation that we have issued to it is under way.
  void let_go(unsigned reserved);
  bool any_reserved();
  // Waits until no operation of issue() is under way. It ends, since bodies notice dead members and all members have
  // issued the same. It does not wait for persistent operations: others may start theirs only after we return.
  void finish();

 private:
  struct TaskQueue final : fibers::Lane {
    TaskQueue(Team& team, unsigned number) : context(team, number) {}
    void run() override;
    void publish_awaited() override { context.waits.publish_awaited(); }
    CollectiveContext context;
    ContextPool* contexts = nullptr;
    bool joined = false;
    Task *first = nullptr, *last = nullptr;
  };
  void make();
  std::unique_ptr<TaskQueue> make_lane(unsigned number);
  void issue_locked(TaskQueue& lane, Task& pending);
  void join(TaskQueue& lane);
  // A context that is reserved, or was, and the offset of our control blocks.
  struct Reserved {
    std::unique_ptr<TaskQueue> lane;
    std::size_t words = 0;
    bool in_use = false;
  };
  void meet(std::span<const std::uint64_t> mine,
            FunctionRef<void(int member, std::size_t i, std::uint64_t theirs)> see);

  Team& team_;
  std::uint64_t issued_ = 0;
  std::size_t words_ = 0;  // offset of our control blocks in our segment, 0: none yet
  std::unique_ptr<TaskQueue> lane_[further];
  std::vector<Reserved> reserved_;  // under the runner's lock
};

// All contexts of a team.
struct AllContexts final : team::TeamState {
  explicit AllContexts(Team& team) : first(team), further(team) {}
  void finish() override { further.finish(); }
  CollectiveContext first;
  ContextPool further;
};

}  // namespace nearfield::context
