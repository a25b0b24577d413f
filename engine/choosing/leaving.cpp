#include "engine/choosing/leaving.hpp"

#include <cstring>

#include "engine/base/out_of_memory.hpp"
#include "engine/choosing/overlapping.hpp"
#include "engine/collectives/pieces/gaps.hpp"
#include "engine/waiting/wait.hpp"

namespace nearfield::choosing {

using collectives::Call;
using collectives::operation;
using team::Track;

namespace {
constexpr collectives::Algorithm by_slots{"slots", {}, nullptr, nullptr, nullptr, "by pieces"},
    was_left{"left", {}, nullptr, nullptr, nullptr, "copied aside"};
}  // namespace

// A call and what it gives, which lies in our segment, where peers can reach it.
struct Leaving::Left {
  Call call;
  std::uint64_t told;  // as which it is entered; 0: it has been
  team::Node& node;
  std::size_t at;
  Left* next = nullptr;

  // nullptr: there is no memory for it.
  static Left* make(const Track& track, const Call& call, std::uint64_t told) {
    const std::size_t bytes = operation(call.collective).gives.each(track.size()) * call.bytes;
    const auto at = track.node().arena().allocate(bytes, 64);
    if (!at) return nullptr;
    auto* const left = new (std::nothrow) Left{call, told, track.node(), *at};
    if (!left) {
      track.node().arena().free(*at);
      return nullptr;
    }
    std::byte* const to = track.node().segment().base() + *at;
    if (call.gaps) layout::gather(to, *call.gaps, 0, bytes);
    else std::memcpy(to, call.send, bytes);
    left->call.send = to;
    left->call.recv = nullptr;
    left->call.gaps = nullptr;
    if (call.collective == collectives::Collective::scatter) {
      // The root's own block is its own at once.
      const std::size_t own = std::size_t(call.root) * call.bytes;
      collectives::put(call.recv, static_cast<const std::byte*>(call.send) + own, call.bytes);
      left->call.recv = to + own;
    }
    return left;
  }
  ~Left() { node.arena().free(at); }
};

Leaving::~Leaving() {
  while (first_) forget_first();
}

bool Leaving::has_room(const Call& call) const {
  return bytes_.load(std::memory_order_relaxed) + call.bytes + beside <= most;
}

Leaving::Row Leaving::perform_behind(Chooser& chooser, Track& track, const Call& call, std::uint64_t told) {
  track.node().runner.poll();
  if (may_be_left(track, call) && queue(track, call, told)) return &was_left;
  settle(track);
  return perform(chooser, track, call, told);
}

Leaving::Row Leaving::perform_without_room(Track& track, const Call& call) {
  collectives::gather_gaps(track, call);
  run_by_pieces(track, call);
  collectives::scatter_gaps(track, call);
  return &by_slots;
}

Leaving::Row Leaving::perform_here(Chooser& chooser, Track& track, const Call& call) {
  try {
    return chooser.perform(track, call);
  } catch (const team::Refused&) {
  }
  return perform_without_room(track, call);
}

// Without memory for it we stay, as those do that get something.
Leaving::Row Leaving::perform_aside(Chooser& chooser, Track& track, const Call& call) {
  fibers::Runner& runner = track.node().runner;
  fibers::Fiber* stack = nullptr;
  Left* const only = Left::make(track, call, 0);
  try {
    if (only) stack = &runner.take_stack();
  } catch (const OutOfMemory&) {
    delete only;
  }
  if (!stack) return chooser.perform(track, call);
  chooser_ = &chooser;
  track_ = &track;
  row_ = nullptr;
  error_ = nullptr;
  first_ = last_ = only;
  bytes_.store(call.bytes + beside, std::memory_order_relaxed);
  left_.store(true, std::memory_order_relaxed);
  all_left_.fetch_add(1, std::memory_order_relaxed);
  if (track.attend(*stack, [](void* self) { static_cast<Leaving*>(self)->run(); }, this)) {
    runner.put_back(*stack);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return row_;
  }
  runner.take_over(*this, *stack);
  track.node().progress.wake_assistant();
  return &was_left;
}

// Behind those that are left. False: it cannot be.
bool Leaving::queue(Track& track, const Call& call, std::uint64_t told) {
  if (!has_room(call)) wait_for_room(track, &call);
  if (!left()) return false;
  Left* const made = Left::make(track, call, told);
  if (!made) return false;
  const std::lock_guard lock(track.node().runner.mutex());
  if (!left() || error_) {
    delete made;
    return false;
  }
  last_->next = made;
  last_ = made;
  bytes_.fetch_add(call.bytes + beside, std::memory_order_relaxed);
  return true;
}

// Until there is room for that call; nullptr: until nothing is left. Bodies look for dead members themselves.
void Leaving::wait_for_room(Track& track, const Call* call) {
  team::Node& node = track.node();
  const auto over = [&] { return !left() || (call && has_room(*call)); };
  if (over()) return;
  const fibers::Runner::Patience patience(node.runner);
  waiting::wait_slowly(node.policy(), over, waiting::Waiter{node.progress});
}

void Leaving::settle(Track& track) {
  if (left()) wait_for_room(track, nullptr);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Leaving::forget_first() {
  Left* const one = first_;
  first_ = one->next;
  bytes_.fetch_sub(one->call.bytes + beside, std::memory_order_relaxed);
  delete one;
}

// On the stack. What follows a call that has failed is not tried.
void Leaving::run() {
  Track& track = *track_;
  for (; first_; forget_first()) {
    if (error_) continue;
    try {
      if (first_->told) track.enter_collective(first_->told);
      row_ = perform_here(*chooser_, track, first_->call);
      if (!row_) throw team::Broken("no algorithm applies, by NEARFIELD_ALGORITHM");
    } catch (const OutOfMemory&) {
      track.team().break_off();  // the others are in it
      error_ = std::current_exception();
    } catch (...) {
      error_ = std::current_exception();
    }
    track.leave();
  }
  track.suspend_by(nullptr);
  if (!has_afterwards) all_left_.fetch_sub(1, std::memory_order_release);  // pairs with any
  left_.store(false, std::memory_order_release);                           // pairs with left
}

void Leaving::tell_awaited() { track_->tell_awaited(); }

bool Leaving::outlive(Track& track, void (*then)(team::Team&)) {
  const std::lock_guard lock(track.node().runner.mutex());
  if (!left()) return false;
  then_ = then;
  return has_afterwards = true;
}

// We are gone when it returns.
void Leaving::afterwards() {
  then_(track_->team());
  all_left_.fetch_sub(1, std::memory_order_release);  // pairs with any
}

}  // namespace nearfield::choosing
