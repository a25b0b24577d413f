#include "engine/choosing/leaving.hpp"

#include <cstring>
#include <optional>

#include "engine/base/out_of_memory.hpp"
#include "engine/choosing/queued_call.hpp"
#include "engine/collectives/pieces/gaps.hpp"
#include "engine/waiting/wait.hpp"

namespace nearfield::choosing {

using collectives::Call;
using collectives::operation;
using context::CollectiveContext;

namespace {
constexpr collectives::Algorithm by_slots{"slots", {}, nullptr, nullptr, nullptr, "by pieces"},
    was_left{"left", {}, nullptr, nullptr, nullptr, "copied aside"};
}  // namespace

// A call and what it gives, which lies in our segment, where peers can reach it.
struct Leaving::Left {
  Call call;
  std::uint64_t packed_call;  // as which it is entered; 0: it has been
  team::Process& process;
  std::size_t at;
  Left* next = nullptr;

  // nullptr: there is no memory for it.
  static Left* make(const CollectiveContext& context, const Call& call, std::uint64_t packed_call) {
    const std::size_t bytes = operation(call.collective).gives.each(context.size()) * call.bytes;
    const auto at = context.process().arena().allocate(bytes, 64);
    if (!at) return nullptr;
    auto* const left = new (std::nothrow) Left{call, packed_call, context.process(), *at};
    if (!left) {
      context.process().arena().free(*at);
      return nullptr;
    }
    std::byte* const to = context.process().segment().base() + *at;
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
  ~Left() { process.arena().free(at); }
};

Leaving::~Leaving() {
  while (first_) forget_first();
}

bool Leaving::has_room(const Call& call) const {
  return bytes_.load(std::memory_order_relaxed) + call.bytes + beside <= most;
}

Leaving::Row Leaving::perform_behind(Chooser& chooser, CollectiveContext& context, const Call& call,
                                     std::uint64_t packed_call) {
  context.process().runner().poll();
  if (may_be_left(context, call) && queue(context, call, packed_call)) return &was_left;
  settle(context);
  return perform(chooser, context, call, packed_call);
}

Leaving::Row Leaving::perform_without_room(CollectiveContext& context, const Call& call) {
  collectives::gather_gaps(context, call);
  run_by_pieces(context, call);
  collectives::scatter_gaps(context, call);
  return &by_slots;
}

Leaving::Row Leaving::perform_here(Chooser& chooser, CollectiveContext& context, const Call& call) {
  try {
    return chooser.perform(context, call);
  } catch (const team::Refused&) {
  }
  return perform_without_room(context, call);
}

// Without memory for it we stay, as those do that get something.
Leaving::Row Leaving::perform_aside(Chooser& chooser, CollectiveContext& context, const Call& call) {
  Left* const only = Left::make(context, call, 0);
  if (!only) return chooser.perform(context, call);
  chooser_ = &chooser;
  context_ = &context;
  row_ = nullptr;
  error_ = nullptr;
  first_ = last_ = only;
  bytes_.store(call.bytes + beside, std::memory_order_relaxed);
  left_.store(true, std::memory_order_relaxed);
  globals().calls_left.fetch_add(1, std::memory_order_relaxed);
  try {
    const std::lock_guard lock(context.process().runner().mutex());
    context.process().runner().start(*this);
  } catch (const OutOfMemory&) {
    forget_first();
    left_.store(false, std::memory_order_relaxed);
    globals().calls_left.fetch_sub(1, std::memory_order_relaxed);
    return chooser.perform(context, call);
  }
  const std::uint64_t limit = left() ? waiting::nanoseconds() + context.waits.patience() : 0;
  wait_until(context, [&] { return waiting::nanoseconds() > limit; });
  if (left()) {
    context.process().progress().wake_background();
    return &was_left;
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  return row_;
}

// Behind those that are left. False: it cannot be.
bool Leaving::queue(CollectiveContext& context, const Call& call, std::uint64_t packed_call) {
  wait_until(context, [&] { return has_room(call); });
  if (!left()) return false;
  Left* const made = Left::make(context, call, packed_call);
  if (!made) return false;
  const std::lock_guard lock(context.process().runner().mutex());
  if (!left() || error_) {
    delete made;
    return false;
  }
  last_->next = made;
  last_ = made;
  bytes_.fetch_add(call.bytes + beside, std::memory_order_relaxed);
  return true;
}

// Or until nothing is left. Bodies look for dead members themselves.
void Leaving::wait_until(CollectiveContext& context, FunctionRef<bool()> otherwise) {
  team::Process& process = context.process();
  const auto over = [&] { return !left() || otherwise(); };
  if (over()) return;
  std::optional<fibers::Runner::Patience> patience;
  if (!process.policy().oversubscribed) patience.emplace(process.runner());
  const auto look = [&] {
    process.runner().poll();
    return over();
  };
  waiting::wait_slowly(process.policy(), look, {.others = process.progress()});
}

void Leaving::settle(CollectiveContext& context) {
  wait_until(context, [] { return false; });
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
  CollectiveContext& context = *context_;
  context.waits.suspend_by(fiber);
  for (; first_; forget_first()) {
    if (error_) continue;
    try {
      if (first_->packed_call) context.calls.enter_collective(first_->packed_call);
      row_ = perform_here(*chooser_, context, first_->call);
      if (!row_) throw team::Broken("no algorithm applies, by NEARFIELD_ALGORITHM");
    } catch (const OutOfMemory&) {
      context.team().break_off("out of memory");  // the others are in it
      error_ = std::current_exception();
    } catch (...) {
      error_ = std::current_exception();
    }
    context.calls.leave();
  }
  context.waits.suspend_by(nullptr);
  if (!has_afterwards) globals().calls_left.fetch_sub(1, std::memory_order_release);  // SYNC: all-left
  left_.store(false, std::memory_order_release);                                      // SYNC: call-left
}

void Leaving::publish_awaited() { context_->waits.publish_awaited(); }

bool Leaving::outlive(CollectiveContext& context, team::TeamUser& then) {
  const std::lock_guard lock(context.process().runner().mutex());
  if (!left()) return false;
  then_ = &then;
  return has_afterwards = true;
}

// We are gone when it returns.
void Leaving::afterwards() {
  then_->left();
  globals().calls_left.fetch_sub(1, std::memory_order_release);  // SYNC: all-left
}

}  // namespace nearfield::choosing
