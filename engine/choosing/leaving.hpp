// Short rooted calls that a member which only sends data (a non-root of Gather or Reduce, the root of Scatter or Bcast)
// leaves before the others have come. Hosts buffer such data, and programs rely on that.
//
//   the call      its part can be done now (row's ready)       done, as any other: it returns
//                 else: its data are copied aside, and the call becomes a task of the first context's queue
//                 (context/task_queue.hpp), for which this thread waits for some time (Waits::patience):
//                 returns, whether it is complete or not
//   the next ones, while a left call is under way
//                 of the same kind                              queued behind, up to `most` bytes: return
//                 others, and those beyond `most` bytes         wait for those before them
//
// The others do not notice: the context's operations are the same, in the same order. Whether a call may be left
// depends on its length, which is equal on all members; whether it is, each decides for itself.
//
// Threads: the thread that makes the communicator's calls uses it; tasks run under the runner's lock.
#pragma once
#include <cstddef>
#include <list>

#include "engine/choosing/chooser.hpp"
#include "engine/choosing/queued_call.hpp"

namespace nearfield::choosing {

class Leaving final {
 public:
  // Bytes of the longest block or vector that is left. With longer data the usual hosts wait for the receiver, too.
  static constexpr std::size_t longest = 4096;
  // Bytes of all calls that are left at a time. Each counts the length of one block or vector, although a scatter
  // copies a block for each member, and `beside` bytes.
  static constexpr std::size_t most = 512 << 10, beside = 64;

  Leaving() = default;
  Leaving(const Leaving&) = delete;

  // Logs the call as `packed_call` and runs it as Chooser::perform; the name of the returned row says if the call was
  // left. If members have no memory for copy buffers (team::Refused), the host cannot serve the call, which some may
  // have left: run_by_pieces() does.
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
  // Waits until no left call is under way, before any other use of the context. Throws the error of a left call.
  void settle() {
    if (!left_.empty()) [[unlikely]]
      finish(left_.front().process);
  }

  bool may_leave = false;  // equal on all members; true if left calls go on while a member is in other calls

 private:
  using Row = const collectives::Algorithm*;
  // A left call, and a copy of its data in our segment, where peers can reach it.
  struct Left final : context::Task {
    // `packed_call`: to be logged; 0: the call is logged already. Throws OutOfMemory.
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
    Row row = nullptr;  // the row that has run it
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
  std::size_t bytes_ = 0;     // of left calls
  std::exception_ptr error_;  // the first error of calls that are no longer in left_
  bool failed_ = false;       // under the runner's lock: a left call has failed, later ones are not tried
};

}  // namespace nearfield::choosing
