#include "engine/context/pool.hpp"

#include <algorithm>
#include <cstring>

#include "engine/base/out_of_memory.hpp"
#include "engine/base/yield.hpp"

namespace nearfield::context {
namespace {

// A member's control blocks of a further context; the gate is used in the first member's.
struct FurtherControlBlock {
  ContextControlBlock context;
  ContextGate gate;
};

FurtherControlBlock* words_at(const Team& team, int member, std::uint64_t offset) {
  return reinterpret_cast<FurtherControlBlock*>(team.segment_of(member) + offset);
}

// Allocates those of `count` contexts in our segment and returns their offset; 0: no memory.
std::size_t make_words(const Team& team, unsigned count) {
  const auto offset = team.process().arena().allocate(count * sizeof(FurtherControlBlock), 4096);
  if (!offset) return 0;
  std::uninitialized_value_construct_n(words_at(team, team.rank(), *offset), count);
  return *offset;
}

void place(CollectiveContext& context, int member, FurtherControlBlock& words) {
  context.place_control_block(member, &words.context);
  if (member == 0) context.place_gate(&words.gate);
}

}  // namespace

ContextPool::~ContextPool() {
  if (words_) team_.process().arena().free(words_);
  for (const Reserved& one : reserved_)
    if (one.words) team_.process().arena().free(one.words);
}

std::unique_ptr<TaskQueue> ContextPool::make_queue(unsigned number, Task* join) {
  auto queue = std::make_unique<TaskQueue>(team_, number, join);
  queue->context.prepare();
  queue->context.barrier.join_tree();
  return queue;
}

// Local. A failed attempt leaves queues that the next one uses.
void ContextPool::make() {
  for (unsigned i = 0; i < further; ++i)
    if (!queue_[i]) queue_[i] = make_queue(i + 1, &join_);
  words_ = make_words(team_, further);
  if (!words_) throw OutOfMemory();
  team_.words(team_.rank()).contexts.store(words_, std::memory_order_release);  // SYNC: further-words
}

void ContextPool::issue(Task& task) {
  if (!words_) make();
  queue_[issued_ % further]->issue(task);
  ++issued_;
}

void ContextPool::let_go(const TaskQueue& reserved) {
  const std::lock_guard lock(team_.process().runner().mutex());
  reserved_[reserved.context.number() - further - 1].in_use = false;
}

// Exchanges some numbers among all members, in the first context.
void ContextPool::meet(std::span<const std::uint64_t> mine,
                       FunctionRef<void(int member, std::size_t i, std::uint64_t theirs)> see) {
  CollectiveContext& context = first.context;
  const std::uint64_t seq = context.slots.allgather(mine.data(), mine.size_bytes());
  for (int r = 0; r < team_.size(); ++r)
    for (std::size_t i = 0; i < mine.size(); ++i) {
      std::uint64_t theirs;
      std::memcpy(&theirs, context.slots.at(r, seq) + i * sizeof theirs, sizeof theirs);
      see(r, i, theirs);
    }
}

TaskQueue* ContextPool::reserve() {
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
    const std::lock_guard lock(mutex);
    Reserved& again = reserved_[i * 64 + std::size_t(__builtin_ctzll(free[i]))];
    again.in_use = true;
    return again.queue.get();
  }
  // A member without memory publishes 0, and all members free theirs.
  Reserved made;
  try {
    const std::lock_guard lock(mutex);
    reserved_.reserve(reserved_.size() + 1);
    made.queue = make_queue(further + 1 + unsigned(reserved_.size()), nullptr);
    made.words = make_words(team_, 1);
  } catch (const OutOfMemory&) {
  }
  bool all = true;
  const std::uint64_t ours = made.words;
  meet({&ours, 1}, [&](int r, std::size_t, std::uint64_t theirs) {
    all &= theirs != 0;
    if (all && made.queue) place(made.queue->context, r, *words_at(team_, r, theirs));
  });
  if (!all) {
    if (made.words) team_.process().arena().free(made.words);
    return nullptr;
  }
  made.in_use = true;
  const std::lock_guard lock(mutex);
  return reserved_.emplace_back(std::move(made)).queue.get();
}

void ContextPool::finish() {
  const auto under_way = [](const auto& queue) { return queue && queue->under_way(); };
  // Does not progress the host, since this may run inside one of its calls.
  while (std::ranges::any_of(queue_, under_way)) {
    if (!team_.process().progress().poll()) yield();
  }
}

// Our own words first, since the waits use them.
void ContextPool::Join::run(CollectiveContext& context) {
  const Team& team = pool.team_;
  const unsigned index = context.number() - 1;
  place(context, team.rank(), words_at(team, team.rank(), pool.words_)[index]);
  for (int r = 0; r < team.size(); ++r) {
    std::uint64_t offset = 0;
    // SYNC: further-words
    auto published = [&] { return (offset = team.words(r).contexts.load(std::memory_order_acquire)) != 0; };
    context.waits.wait_until(published, [r](int m) { return m == r; });
    place(context, r, words_at(team, r, offset)[index]);
  }
}

}  // namespace nearfield::context
