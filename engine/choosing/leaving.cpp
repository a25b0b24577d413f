#include "engine/choosing/leaving.hpp"

#include <cstring>
#include <utility>

#include "engine/base/out_of_memory.hpp"
#include "engine/collectives/pieces/rounds.hpp"
#include "engine/context/pool.hpp"
#include "engine/waiting/wait.hpp"

namespace nearfield::choosing {

using collectives::Call;
using context::CollectiveContext;

namespace {

constexpr collectives::Algorithm was_left{"left", {}, nullptr, nullptr, nullptr, "copied aside"};

std::size_t counted(const Call& call) { return call.bytes + Leaving::beside; }

// Bodies look for dead members themselves.
void wait_until(team::Process& process, FunctionRef<bool()> done) {
  if (done()) return;
  const auto look = [&] {
    process.runner().poll_patiently(process.policy());
    return done();
  };
  waiting::wait_slowly(process.policy(), look, {.others = process.progress()});
}

}  // namespace

Leaving::Left::Left(Leaving& leaving, Chooser& chooser, const CollectiveContext& context, const Call& given,
                    std::uint64_t packed_call)
    : leaving(leaving), chooser(chooser), call(given), packed_call(packed_call), process(context.process()) {
  const std::size_t bytes = collectives::operation(call.collective).gives.each(context.size()) * call.bytes;
  const auto room = process.arena().allocate(bytes, 64);
  if (!room) throw OutOfMemory();
  at = *room;
  std::byte* const to = process.segment().base() + at;
  if (call.gaps) layout::gather(to, *call.gaps, 0, bytes);
  else std::memcpy(to, call.send, bytes);
  call.send = to;
  call.recv = nullptr;
  call.gaps = nullptr;
  if (call.collective != collectives::Collective::scatter) return;
  // The root's own block is its own at once.
  call.recv = to + std::size_t(call.root) * call.bytes;
  collectives::put(given.recv, static_cast<const std::byte*>(call.recv), call.bytes);
}

Leaving::Left::~Left() {
  if (at) process.arena().free(at);
}

void Leaving::Left::run(CollectiveContext& context) {
  if (std::exchange(leaving.failed_, true)) return;
  if (packed_call) context.calls.enter_collective(packed_call);
  row = run_anyhow(context, call, [this, &context] { return chooser.perform(context, call); });
  leaving.failed_ = false;
  process.arena().free(std::exchange(at, 0));
}

// nullptr: there is no memory for it.
Leaving::Left* Leaving::leave(Chooser& chooser, CollectiveContext& context, const Call& call,
                              std::uint64_t packed_call) try {
  std::list<Left> made;
  made.emplace_back(*this, chooser, context, call, packed_call);
  context.team().contexts().first.issue(made.back());
  left_.splice(left_.end(), made);
  bytes_ += counted(call);
  return &left_.back();
} catch (const OutOfMemory&) {
  return nullptr;
}

// Forgets left calls that are complete. Returns whether others are left.
bool Leaving::forget_complete() {
  for (; !left_.empty() && left_.front().complete(); left_.pop_front()) {
    if (!error_) error_ = left_.front().error();
    bytes_ -= counted(left_.front().call);
  }
  return !left_.empty();
}

// Without memory for the copy the call runs in place, as that of members that get something.
Leaving::Row Leaving::perform_aside(Chooser& chooser, CollectiveContext& context, const Call& call) {
  const Left* const only = leave(chooser, context, call, 0);
  if (!only) return chooser.perform(context, call);
  const std::uint64_t limit = waiting::nanoseconds() + context.waits.patience();
  wait_until(context.process(), [&] { return only->complete() || waiting::nanoseconds() > limit; });
  if (!only->complete()) {
    context.process().progress().wake_background();
    return &was_left;
  }
  const Row row = only->row;
  finish(context.process());
  return row;
}

// Leaves the call behind those that are left. nullptr: it cannot be left, and no left call is under way any more.
Leaving::Row Leaving::queue(Chooser& chooser, CollectiveContext& context, const Call& call, std::uint64_t packed_call) {
  context.process().runner().poll();
  if (covers(call) && only_gives(context, call)) {
    wait_until(context.process(), [&] { return !forget_complete() || bytes_ + counted(call) <= most; });
    if (!left_.empty() && !error_ && leave(chooser, context, call, packed_call)) return &was_left;
  }
  finish(context.process());
  return nullptr;
}

void Leaving::finish(team::Process& process) {
  wait_until(process, [&] { return !forget_complete(); });
  if (!error_) return;
  failed_ = false;
  std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace nearfield::choosing
