// Short rooted calls that a member leaves before the others have come, as hosts let it that buffer what it gives: who
// does not get anything in a Gather or Reduce, the root of a Scatter or Bcast. Programs rely on that, knowingly or not.
//
//   the call      its part can be done now (row's ready)       done, as any other: it returns
//                 else: what is given is copied aside, and the call becomes a task of the first context's queue
//                 (context/task_queue.hpp), for which this thread waits for some time (Waits::patience):
//                 returns, whether it is complete or not
//   the next ones, as long as something is left
//                 of the same kind                              queued behind, up to `most` bytes: return
//                 others, and what there is no room for         wait for those before them
//
// The others do not notice: the context's operations are the same, in the same order. Whether a call may be left
// depends on its length, which is equal on all members; whether it is, each decides for itself.
//
// Threads: that of the communicator's calls; tasks run under the runner's lock.
#pragma once
#include <cstddef>
#include <list>

#include "engine/choosing/chooser.hpp"
#include "engine/choosing/queued_call.hpp"

namespace nearfield::choosing {

class Leaving final {
 public:
  // Of a block or vector; hosts that are in use begin to wait for the receiver there.
  static constexpr std::size_t longest = 4096;
  // What may be left, of one peer's share; each call counts as its bytes and some for what it takes beside.
  static constexpr std::size_t most = 512 << 10, beside = 64;

  Leaving() = default;
  Leaving(const Leaving&) = delete;

  // Enters the call, which others see as `packed_call`, and does as Chooser::perform; what it returns tells by its name
  // that the call was left. Where members have no room for copy buffers (team::Refused) some of them may have left it,
  // so that the host cannot serve it: it goes by pieces.
  const collectives::Algorithm* perform(Chooser& chooser, context::CollectiveContext& context,
                                        const collectives::Call& call, std::uint64_t packed_call) {
    if (!left_.empty()) [[unlikely]]
      if (const Row row = queue(chooser, context, call, packed_call)) return row;
    context.calls.enter_collective(packed_call);
    if (!covers(call)) return chooser.perform(context, call);
    try {
      collectives::Algorithm const* ran = nullptr;
      if (!only_gives(context, call)) return chooser.perform(context, call);
      if (chooser.perform_if_ready(context, call, ran)) [[likely]]
        return ran;
      return perform_aside(chooser, context, call);
    } catch (const team::Refused&) {
    }
    return run_by_pieces(context, call);
  }
  // Before anything else of the context: until nothing is left. Throws what has kept it from ending.
  void settle() {
    if (!left_.empty()) [[unlikely]]
      finish(left_.front().process);
  }

  bool may_leave = false;  // equal on all members: what is left goes on while they are in calls of others

 private:
  using Row = const collectives::Algorithm*;
  // A call and what it gives, which lies in our segment, where peers can reach it.
  struct Left final : context::Task {
    // `packed_call`: as which it is entered; 0: it has been. Throws OutOfMemory.
    Left(Leaving& leaving, Chooser& chooser, const context::CollectiveContext& context, const collectives::Call& call,
         std::uint64_t packed_call);
    ~Left();
    void run(context::CollectiveContext& context) override;
    Leaving& leaving;
    Chooser& chooser;
    collectives::Call call;
    const std::uint64_t packed_call;
    team::Process& process;
    std::size_t at = 0;
    Row row = nullptr;  // that has run it
  };
  bool covers(const collectives::Call& call) const {
    return may_leave && call.bytes <= longest && collectives::rooted(call.collective);
  }
  static bool only_gives(const context::CollectiveContext& context, const collectives::Call& call) {
    const bool root_gives = collectives::operation(call.collective).gives.who == collectives::Who::root;
    return (context.rank() == call.root) == root_gives;
  }
  Row perform_aside(Chooser& chooser, context::CollectiveContext& context, const collectives::Call& call);
  Row queue(Chooser& chooser, context::CollectiveContext& context, const collectives::Call& call,
            std::uint64_t packed_call);
  Left* leave(Chooser& chooser, context::CollectiveContext& context, const collectives::Call& call,
              std::uint64_t packed_call);
  void finish(team::Process& process);
  bool forget_complete();

  std::list<Left> left_;
  std::size_t bytes_ = 0;     // of those
  std::exception_ptr error_;  // of those that have been forgotten
  bool failed_ = false;       // under the runner's lock: what follows a call that has failed is not tried
};

}  // namespace nearfield::choosing
