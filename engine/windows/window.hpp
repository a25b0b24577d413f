// A window: memory of each member of a team, in which the others load, store and combine without help of that member.
//
//   creation     a team of its own; the members publish where their control blocks and memory lie. If one of them
//                cannot reach all of it, all refuse the window
//   put, get     moving.cpp: a copy by the origin, complete when it returns
//   accumulate   atomics.cpp
//   epochs       epochs.cpp: fence is a barrier of the team, post and complete are counters, locks are tickets
//
// An operation that is complete at the origin is complete at the target after a fence of the origin: flush, unlock,
// complete, fence. control_block.hpp names the writers of all shared words.
//
// Threads: any number may move data and use locks at the same time; calls that open and close epochs of all targets
// (fence, start, complete, post, wait, lock_all) come one at a time, as MPI requires.
#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/atomic_ref.hpp"
#include "engine/base/function_ref.hpp"
#include "engine/context/context.hpp"
#include "engine/copying/landing.hpp"
#include "engine/layout/layout.hpp"
#include "engine/reducing/fold.hpp"
#include "engine/windows/control_block.hpp"

namespace nearfield::windows {

// A member's memory, mapped here.
struct Memory {
  std::byte* base = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t unit = 1;  // bytes of one displacement
};

// The open epoch by which we may access a target. unchecked: a lock with MPI_MODE_NOCHECK, which takes none.
enum class Access : std::uint8_t { none, started, shared, exclusive, unchecked };

// Number of locks that this process holds in all its windows.
using HeldLocks = std::atomic<int>;

class Window {
 public:
  // Memory of members lies in their segments, anywhere (exchanged like buffers of a collective), or at addresses that
  // the caller knows.
  enum class Lies : std::uint8_t { in_segment, anywhere, known };

  // Collective. nullptr: all members refuse it, for the reason `why`. `mine`: our memory. `known`: for Lies::known,
  // memory of each member. `held`: of our process. Throws team::Broken.
  static std::unique_ptr<Window> create(std::unique_ptr<team::Team> team, HeldLocks& held, Lies lies,
                                        const Memory& mine, std::span<const Memory> known, std::string& why);
  // Local: for a window whose members have not met at its end, such as after a wait in vain.
  ~Window();
  // Local. pre: all members have met, and no operation follows.
  static void close(std::unique_ptr<Window> window);

  int rank() const { return rank_; }
  int size() const { return size_; }
  team::Team& team() const { return *team_; }
  const Memory& memory(int member) const { return memory_[std::size_t(member)]; }
  bool everywhere() const { return everywhere_.load(std::memory_order_relaxed); }
  Access access(int target) const { return access_[std::size_t(target)]; }
  bool accessible(int target) const { return everywhere() || access_[std::size_t(target)] != Access::none; }
  bool several_threads = false;  // the process may be in several calls at once

  // Epochs. False: the call does not fit the open epochs, and nothing has been done. `meets`, `notifies`, `waits`,
  // `checked`: whether the call synchronises with others; false if an assertion of MPI makes that unnecessary.
  void meet();  // barrier of all members, which completes their operations
  bool fence(bool opens, bool meets);
  bool post(std::span<const int> origins, bool notifies);
  bool start(std::span<const int> targets, bool waits);
  bool complete();
  bool wait();
  bool test(bool& done);
  bool lock(int target, bool exclusive, bool checked);
  bool unlock(int target);
  bool lock_all(bool checked);
  bool unlock_all();
  bool passive(int target) const { return all_locked_ || access_[std::size_t(target)] > Access::started; }
  bool passive() const {
    return all_locked_ || std::ranges::any_of(access_, [](Access access) { return access > Access::started; });
  }
  bool idle() const { return !started_ && !posted_ && !passive(); }
  void end_epochs();  // ends all epochs, so that nobody waits for what this member has begun
  // Completes our operations at all targets. The fence keeps later loads behind earlier stores.
  static void flush() { full_fence(); }

  // `bytes` dense bytes to, or from, `at` in the target's memory.
  void put(int target, std::byte* at, const void* from, std::size_t bytes) {
    if (bytes < copying::least_landed || target == rank_) copying::copy(at, from, bytes);
    else put_long(target, at, from, bytes);
  }
  void get(int target, const std::byte* at, void* to, std::size_t bytes) {
    if (bytes < copying::least_landed || target == rank_) copying::copy(to, at, bytes);
    else get_long(target, at, to, bytes);
  }

  // Accumulates (atomics.cpp).
  struct Operation {
    reducing::FoldFn fold = nullptr;  // nullptr: `call` combines, or the element is replaced or only fetched
    reducing::Op op{};
    reducing::Type type{};
    bool replaces = false;
    std::uint32_t bytes = 1;  // of one element, and the distance to the next
    // For operators without a kernel: at[i] = from[i] (op) at[i], always under locks. `context` is the caller's.
    using Call = void (*)(const Operation&, const std::byte* from, std::byte* at, std::uint64_t count);
    Call call = nullptr;
    std::uint64_t context[2] = {};
  };
  // `count` elements, dense at `at` in the target's memory and at `from`; `fetched`: room for the values before, may be
  // null. Each element is atomic. Throws team::Broken.
  void accumulate(int target, std::byte* at, const std::byte* from, std::byte* fetched, std::uint64_t count,
                  const Operation& operation);
  // The same for bytes [position, position + bytes) of `to`, which are whole elements and do not overlap; `from` and
  // `fetched` are dense.
  void accumulate(int target, const layout::Data& to, std::uint64_t position, std::uint64_t bytes,
                  const std::byte* from, std::byte* fetched, const Operation& operation);
  // Replaces one element of `bytes` bytes by `value` if it equals `expected`; `fetched`: the value before.
  void compare_and_swap(int target, std::byte* at, const std::byte* expected, const std::byte* value,
                        std::byte* fetched, std::uint32_t bytes);

 private:
  Window(std::unique_ptr<team::Team> team, HeldLocks& held, const Memory& mine);
  WindowControlBlock& words(int member) const { return *words_[std::size_t(member)]; }
  Towards& towards(int owner, int member) const {
    return reinterpret_cast<Towards*>(words_[std::size_t(owner)] + 1)[member];
  }
  void put_long(int target, std::byte* at, const void* from, std::size_t bytes);
  void get_long(int target, const std::byte* at, void* to, std::size_t bytes);
  bool arrange(Lies lies, std::span<const Memory> known, std::string& why);
  void wait_for(std::uint32_t what, std::uint32_t ticket, FunctionRef<bool()> flag, FunctionRef<bool(int)> lacks);
  void notify(int member);
  void publish_asleep(bool asleep, std::uint32_t what, std::uint32_t ticket);
  void ring_next(int target, Turn turn, bool lets_in = false);
  void acquire(int target, bool exclusive);
  void acquire_urgently(int target);
  void release(int target, bool exclusive);
  void use_locks();
  class Busy;
  class Striped;
  template <class Body>
  bool as_single(Body body);

  std::unique_ptr<team::Team> team_;
  context::CollectiveContext& context_;
  const int rank_, size_;
  std::vector<Memory> memory_;
  std::vector<WindowControlBlock*> words_;
  std::vector<Access> access_;
  std::size_t words_offset_ = 0;
  bool exchanged_ = false;
  std::atomic<bool> everywhere_{false};  // an epoch to all targets: after a fence, between lock_all and unlock_all
  bool all_locked_ = false, all_checked_ = false;
  bool started_ = false, posted_ = false;
  HeldLocks& held_;
  void count_lock(int by) {
    if (several_threads) held_.fetch_add(by, std::memory_order_relaxed);
    else held_.store(held_.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  struct Landing {
    std::atomic_flag busy;
    copying::Putting putting;
    copying::Getting getting;
  };
  std::unique_ptr<Landing[]> landing_;  // by target
  std::vector<int> targets_, origins_;
  std::vector<std::uint32_t> starts_, waits_;  // by member: number of starts that awaited `posted`, and of posts
  bool always_locked_ = false;                 // a member's kernel has no barrier on all processors
};

// The processors' barrier (membarrier); false: the kernel does not have it, or forbids it.
bool register_for_barriers();
void barrier_on_all_processors();

}  // namespace nearfield::windows
