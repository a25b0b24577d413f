// Short rooted calls that a member leaves before the others have come, as hosts let it that buffer what it gives: who
// does not get anything in a Gather or Reduce, the root of a Scatter or Bcast. Programs rely on that, knowingly or not.
//
//   the call      its part can be done now (row's ready)       done, as any other: it returns
//                 else: what is given is copied aside, and the body goes to the runner (fibers/runner.hpp), for which
//                 this thread waits for some time (Waits::patience): returns, whether it has ended or not
//   the next ones, as long as something is left
//                 of the same kind                              queued behind, up to `most` bytes: return
//                 others, and what there is no room for         wait for those before them
//
// The others do not notice: the context's operations are the same, in the same order. Whether a call may be left
// depends on its length, which is equal on all members; whether it is, each decides for itself.
//
// Threads: under the runner's lock.
#pragma once
#include <atomic>
#include <cstddef>
#include <exception>

#include "engine/base/globals.hpp"
#include "engine/choosing/chooser.hpp"
#include "engine/fibers/runner.hpp"

namespace nearfield::choosing {

class Leaving final : fibers::Lane {
 public:
  // Of a block or vector; hosts that are in use begin to wait for the receiver there.
  static constexpr std::size_t longest = 4096;
  // What may be left, of one peer's share; each call counts as its bytes and some for what it takes beside.
  static constexpr std::size_t most = 512 << 10, beside = 64;

  Leaving() = default;
  Leaving(const Leaving&) = delete;
  ~Leaving();

  // Enters the call, which others see as `packed_call`, and does as Chooser::perform; what it returns tells by its name
  // that the call was left.
  const collectives::Algorithm* perform(Chooser& chooser, context::CollectiveContext& context,
                                        const collectives::Call& call, std::uint64_t packed_call) {
    if (left()) [[unlikely]]
      return perform_behind(chooser, context, call, packed_call);
    context.calls.enter_collective(packed_call);
    if (!may_be_left(context, call)) return chooser.perform(context, call);
    collectives::Algorithm const* ran = nullptr;
    if (chooser.perform_if_ready(context, call, ran)) [[likely]]
      return ran;
    return perform_aside(chooser, context, call);
  }
  // Where members have no room for copy buffers (team::Refused): some of them may have left such a call, so that the
  // host cannot serve it. Then it goes by slots.
  bool needs_no_room(const collectives::Call& call) const { return may_leave && is_short(call); }
  static const collectives::Algorithm* perform_without_room(context::CollectiveContext& context,
                                                            const collectives::Call& call);
  bool left() const { return left_.load(std::memory_order_acquire); }  // SYNC: call-left
  // Before anything else of the context: until nothing is left. Throws what has kept it from ending.
  void settle(context::CollectiveContext& context);
  // The communicator goes: whoever sees that nothing is left any more calls then.left(). False: nothing is left.
  bool outlive(context::CollectiveContext& context, team::TeamUser& then);
  // Whether anything of any communicator is left.
  static bool any() { return globals().calls_left.load(std::memory_order_acquire) != 0; }  // SYNC: all-left

  bool may_leave = false;  // equal on all members: what is left goes on while they are in calls of others

 private:
  using Row = const collectives::Algorithm*;
  struct Left;
  // A bit for each collective.
  template <class Has>
  static constexpr std::uint32_t those_that(Has has) {
    std::uint32_t bits = 0;
    for (std::size_t c = 0; c < collectives::collective_count; ++c)
      bits |= std::uint32_t{has(collectives::operation(collectives::Collective(c)))} << c;
    return bits;
  }
  static bool is_one(std::uint32_t bits, const collectives::Call& call) {
    return bits >> unsigned(call.collective) & 1;
  }
  static bool is_short(const collectives::Call& call) {
    constexpr auto rooted = those_that([](const collectives::Operation& o) { return o.rooted(); });
    return call.bytes <= longest && is_one(rooted, call);
  }
  // We only give in it.
  bool may_be_left(const context::CollectiveContext& context, const collectives::Call& call) const {
    constexpr auto given_by_root =
        those_that([](const collectives::Operation& o) { return o.gives.who == collectives::Who::root; });
    return needs_no_room(call) && (context.rank() == call.root) == is_one(given_by_root, call);
  }
  Row perform_behind(Chooser& chooser, context::CollectiveContext& context, const collectives::Call& call,
                     std::uint64_t packed_call);
  Row perform_here(Chooser& chooser, context::CollectiveContext& context, const collectives::Call& call);
  Row perform_aside(Chooser& chooser, context::CollectiveContext& context, const collectives::Call& call);
  bool queue(context::CollectiveContext& context, const collectives::Call& call, std::uint64_t packed_call);
  bool has_room(const collectives::Call& call) const;
  void wait_until(context::CollectiveContext& context, FunctionRef<bool()> otherwise);
  void forget_first();
  void run() override;
  void publish_awaited() override;
  void afterwards() override;

  std::atomic<bool> left_{false};
  std::atomic<std::size_t> bytes_{0};
  Left *first_ = nullptr, *last_ = nullptr;
  std::exception_ptr error_;
  Row row_ = nullptr;  // of the last one
  Chooser* chooser_ = nullptr;
  context::CollectiveContext* context_ = nullptr;
  team::TeamUser* then_ = nullptr;
};

}  // namespace nearfield::choosing
