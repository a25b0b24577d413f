#include "engine/context/pool.hpp"

#include <algorithm>
#include <cstring>

#include "engine/base/out_of_memory.hpp"
#include "engine/base/yield.hpp"

namespace nearfield::context {
namespace {

// A member's control blocks of the further contexts; the gates are used in the first member's.
struct PoolControlBlock {
  ContextControlBlock context[further];
  ContextGate gate[further];
};

struct ReservedControlBlock {
  ContextControlBlock context;
  ContextGate gate;
};

template <class ControlBlock>
ControlBlock& words_at(const Team& team, int member, std::uint64_t offset) {
  return *reinterpret_cast<ControlBlock*>(team.segment_of(member) + offset);
}

// Allocates control blocks in our segment and returns their offset; 0: no memory.
template <class ControlBlock>
std::size_t make_words(const Team& team) {
  const auto offset = team.process().arena().allocate_zeroed(sizeof(ControlBlock), 4096);
  if (!offset) return 0;
  new (&words_at<ControlBlock>(team, team.rank(), *offset)) ControlBlock{};
  return *offset;
}

}  // namespace

ContextPool::~ContextPool() {
  if (words_) team_.process().arena().free(words_);
  for (const Reserved& one : reserved_)
    if (one.words) team_.process().arena().free(one.words);
}

std::unique_ptr<ContextPool::TaskQueue> ContextPool::make_lane(unsigned number) {
  auto lane = std::make_unique<TaskQueue>(team_, number);
  lane->contexts = this;
  lane->context.prepare();
  lane->context.barrier.join_tree();
  return lane;
}

// Local. A failed attempt leaves task queues that the next one uses.
void ContextPool::make() {
  for (unsigned i = 0; i < further; ++i)
    if (!lane_[i]) lane_[i] = make_lane(i + 1);
  if (words_) return;
  words_ = make_words<PoolControlBlock>(team_);
  if (!words_) throw OutOfMemory();
  team_.words(team_.rank()).contexts.store(words_, std::memory_order_release);  // SYNC: further-words
}

void ContextPool::issue(Task& pending) {
  Process& process = team_.process();
  {
    const std::lock_guard lock(process.runner().mutex());
    if (!words_) make();
    issue_locked(*lane_[issued_ % further], pending);
    ++issued_;
  }
  if (process.runner().busy()) process.progress().wake_background();
}

void ContextPool::issue_to(unsigned reserved, Task& pending) {
  Process& process = team_.process();
  {
    const std::lock_guard lock(process.runner().mutex());
    issue_locked(*reserved_[reserved].lane, pending);
  }
  if (process.runner().busy()) process.progress().wake_background();
}

void ContextPool::issue_locked(TaskQueue& lane, Task& pending) {
  pending.next_ = nullptr;
  pending.error_ = nullptr;
  pending.completed_.store(false, std::memory_order_relaxed);
  if (lane.fiber) {
    lane.last->next_ = &pending;
    lane.last = &pending;
  } else {
    lane.first = lane.last = &pending;
    team_.process().runner().start(lane);
  }
}

void ContextPool::let_go(unsigned reserved) {
  const std::lock_guard lock(team_.process().runner().mutex());
  reserved_[reserved].in_use = false;
}

bool ContextPool::any_reserved() {
  const std::lock_guard lock(team_.process().runner().mutex());
  return std::ranges::any_of(reserved_, &Reserved::in_use);
}

// Exchanges some numbers among all members, in the first context.
void ContextPool::meet(std::span<const std::uint64_t> mine,
                       FunctionRef<void(int member, std::size_t i, std::uint64_t theirs)> see) {
  CollectiveContext& first = team_.context();
  const std::uint64_t seq = first.slots.allgather(mine.data(), mine.size_bytes());
  for (int r = 0; r < team_.size(); ++r)
    for (std::size_t i = 0; i < mine.size(); ++i) {
      std::uint64_t theirs;
      std::memcpy(&theirs, first.slots.at(r, seq) + i * sizeof theirs, sizeof theirs);
      see(r, i, theirs);
    }
}

std::optional<unsigned> ContextPool::reserve() {
  std::mutex& mutex = team_.process().runner().mutex();
  std::uint64_t free[slot_payload / sizeof(std::uint64_t)] = {};  // a bit for each; contexts beyond it are not reused
  std::size_t used = 0;
  {
    const std::lock_guard lock(mutex);
    const std::size_t named = std::min(reserved_.size(), 64 * std::size(free));
    for (std::size_t i = 0; i < named; ++i) free[i / 64] |= std::uint64_t{!reserved_[i].in_use} << i % 64;
    used = (named + 63) / 64;  // equal on all members
  }
  if (used) meet({free, used}, [&](int, std::size_t i, std::uint64_t theirs) { free[i] &= theirs; });
  for (std::size_t i = 0; i < used; ++i) {
    if (!free[i]) continue;
    const auto again = unsigned(i * 64 + std::size_t(__builtin_ctzll(free[i])));
    const std::lock_guard lock(mutex);
    reserved_[again].in_use = true;
    return again;
  }
  // A member without memory publishes 0, and all members free theirs.
  Reserved made;
  const auto number = unsigned(reserved_.size());
  try {
    const std::lock_guard lock(mutex);
    reserved_.reserve(number + 1);
    made.lane = make_lane(further + 1 + number);
    made.words = make_words<ReservedControlBlock>(team_);
  } catch (const OutOfMemory&) {
  }
  bool all = true;
  const std::uint64_t ours = made.words;
  meet({&ours, 1}, [&](int r, std::size_t, std::uint64_t theirs) {
    all &= theirs != 0;
    if (!all) return;
    auto& words = words_at<ReservedControlBlock>(team_, r, theirs);
    if (made.lane) made.lane->context.place_control_block(r, &words.context);
    if (made.lane && r == 0) made.lane->context.place_gate(&words.gate);
  });
  if (!all) {
    if (made.words) team_.process().arena().free(made.words);
    return std::nullopt;
  }
  made.lane->joined = made.in_use = true;
  const std::lock_guard lock(mutex);
  reserved_.push_back(std::move(made));
  return number;
}

void ContextPool::finish() {
  Process& process = team_.process();
  auto under_way = [&] {
    const std::lock_guard lock(process.runner().mutex());
    return std::ranges::any_of(lane_, [](const auto& lane) { return lane && lane->fiber; });
  };
  // Does not progress the host, since this may run inside one of its calls.
  while (under_way()) {
    if (!process.progress().poll()) yield();
  }
}

// Runs on the task's fiber: finds all members' control blocks of this context.
void ContextPool::join(TaskQueue& lane) {
  lane.context.waits.suspend_by(lane.fiber);
  const Team& team = team_;
  lane.context.place_control_block(
      team.rank(), &words_at<PoolControlBlock>(team, team.rank(), words_).context[lane.context.number() - 1]);
  for (int r = 0; r < team.size(); ++r) {
    std::uint64_t offset = 0;
    // SYNC: further-words
    auto published = [&] { return (offset = team.words(r).contexts.load(std::memory_order_acquire)) != 0; };
    lane.context.waits.wait_until(published, [r](int m) { return m == r; });
    auto& theirs = words_at<PoolControlBlock>(team, r, offset);
    lane.context.place_control_block(r, &theirs.context[lane.context.number() - 1]);
    if (r == 0) lane.context.place_gate(&theirs.gate[lane.context.number() - 1]);
  }
  lane.joined = true;
}

void ContextPool::TaskQueue::run() {
  while (first) {
    Task& pending = *first;
    try {
      context.waits.suspend_by(fiber);
      if (!joined) contexts->join(*this);
      pending.run(context);
    } catch (const OutOfMemory&) {
      context.team().break_off("out of memory");  // the others are in the same call
      pending.error_ = std::current_exception();
    } catch (...) {
      pending.error_ = std::current_exception();
    }
    context.calls.leave();
    first = pending.next_;
    // SYNC: completed; the owner may destroy the task from here on
    pending.completed_.store(true, std::memory_order_release);
  }
  last = nullptr;
}

}  // namespace nearfield::context
