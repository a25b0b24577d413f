// Operations that may overlap others: the further contexts of a team.
//
//   member     issue     the next number n, the same on all members, since all issue the same calls in the same order:
//                        context n % further is its own, nobody has to be asked
//              body      runs on a stack of its own until it has to wait; goes on in whatever else this process does
//              complete  when the body has ended; the next operation of the context begins
//
// The words of further contexts are made by the first operation that is issued. A member tells where its own lie
// (MemberControlBlock::contexts), and the body of that operation waits until all have told.
//
// Operations that are planned once and begun again and again are begun in any order, one member's another than the
// next one's. So each has a context of its own, which the members reserve together:
//
//   member     meets the others, by a slot of the first context: which of the contexts that it has let go of may be
//              used again; the lowest that all name is taken
//              else meets them once more: where the words of a new one lie, 0: there is no memory for them, and nobody
//              uses it
//
// What a member has let go of it has completed, so it neither reads nor writes words of it any more.
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

// One call. It has to stay until it is complete, and may then be issued again.
class Task {
 public:
  bool complete() const { return completed_.load(std::memory_order_acquire); }  // SYNC: completed
  // Once it is complete: why it failed, nullptr where it did not.
  const std::exception_ptr& error() const { return error_; }

 protected:
  Task() = default;
  ~Task() = default;
  // The body: all members' of one number run the same.
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

  // Local: begins the next operation, or has it wait for the one before it in its context. Throws std::bad_alloc; then
  // it was not issued, and the members are no longer in step (Team::break_off).
  void issue(Task& pending);
  // Collective, as a call of the first context: a context for one planned operation, by its number. None, on all
  // members alike: one of them has no memory for it. Throws what waits throw.
  std::optional<unsigned> reserve();
  // Local: begins the next operation of that context. Throws std::bad_alloc as issue().
  void issue_to(unsigned reserved, Task& pending);
  // Local. pre: nothing that we have issued to it is under way.
  void let_go(unsigned reserved);
  bool any_reserved();
  // Until nothing of issue() is under way. Bounded, since bodies look for dead members, and all members have issued it.
  // What is planned is not waited for: others may begin theirs only when we are through here.
  void finish();

 private:
  struct TaskQueue final : fibers::Lane {
    TaskQueue(Team& team, unsigned number) : context(team, number) {}
    void run() override;
    void tell_awaited() override { context.tell_awaited(); }
    CollectiveContext context;
    ContextPool* contexts = nullptr;
    bool joined = false;
    Task *first = nullptr, *last = nullptr;
  };
  void make();
  std::unique_ptr<TaskQueue> make_lane(unsigned number);
  void issue_locked(TaskQueue& lane, Task& pending);
  void join(TaskQueue& lane);
  // The contexts that are reserved or were, and where our words of each lie.
  struct Reserved {
    std::unique_ptr<TaskQueue> lane;
    std::size_t words = 0;
    bool in_use = false;
  };
  void meet(std::span<const std::uint64_t> mine,
            FunctionRef<void(int member, std::size_t i, std::uint64_t theirs)> see);

  Team& team_;
  std::uint64_t issued_ = 0;
  std::size_t words_ = 0;  // offset in our segment, 0: none yet
  std::unique_ptr<TaskQueue> lane_[further];
  std::vector<Reserved> reserved_;  // under the runner's lock
};

// What a team has of both.
struct AllContexts final : team::TeamState {
  explicit AllContexts(Team& team) : first(team), further(team) {}
  void finish() override { further.finish(); }
  CollectiveContext first;
  ContextPool further;
};

}  // namespace nearfield::context
