#include <bit>

#include "engine/collectives/pieces/direct.hpp"
#include "engine/collectives/pieces/gaps.hpp"

namespace nearfield::collectives {

namespace {

using Buffer = context::CollectiveContext::Buffer;

// What peers may have to load of ours, and to store. `own`: also what only the root itself needs of its own, where it
// shares with all others what is not combined.
Buffer exposed(const context::CollectiveContext& context, const Call& call, const Contribution& side, const void* at,
               bool own) {
  const Operation& op = operation(call.collective);
  const bool private_copy = op.rooted() && !op.reduces() && side.who == Who::all && context.rank() == call.root && !own;
  const std::size_t blocks = private_copy ? 0 : side.blocks(context.rank(), context.size(), call.root);
  return {const_cast<void*>(at), blocks * call.bytes};
}

// Whether this root's own block needs no copy: peers then leave it more of theirs.
bool in_place_at_root(const context::CollectiveContext& context, const Call& call) {
  if (context.rank() != call.root || !rooted(call.collective)) return false;
  const Operation& op = operation(call.collective);
  const auto *const send = static_cast<const std::byte*>(call.send), *const recv =
                                                                         static_cast<const std::byte*>(call.recv);
  const std::size_t at = op.in_place_at(call.root, call.bytes);
  return (op.in_place == InPlace::own_block_of_recv && send == recv + at) ||
         (op.in_place == InPlace::own_block_of_send && recv == send + at);
}

// Parts worth the trouble of sharing them out, some to every CPU. As many for all members whose lengths are of a class,
// since programs get lengths wrong.
std::size_t parts_of(const context::CollectiveContext& context, const Call& call) {
  constexpr std::size_t least = 64 << 10;  // bytes of one part
  const auto p = std::size_t(context.size());
  const Contribution& gets = operation(call.collective).gets;
  const std::size_t blocks = gets.who == Who::all ? gets.each(context.size()) : 1;
  const auto cpus = std::size_t(double(p) / context.shape().ranks_per_cpu + 0.5);
  return std::clamp<std::size_t>(std::bit_ceil(call.bytes) * p * blocks / least, 1,
                                 std::min(p, 4 * std::max<std::size_t>(cpus, 1)));
}

// The call as far as all members have memory for it: a vector that is not made of blocks, of which each has its place.
// No bytes where some member has less than an element.
Call shortest(const context::CollectiveContext& context, const Call& call) {
  Call common = call;
  const Operation& op = operation(call.collective);
  if (!op.reduces() && op.gets.amount == Amount::blocks) return common;
  bool differ = false;
  for (int r = 0; r < context.size(); ++r) {
    const std::size_t theirs = exposed_length(context, r);
    differ |= theirs != call.bytes;
    common.bytes = std::min(common.bytes, theirs);
  }
  if (!differ || !op.reduces()) [[likely]]
    return common;
  constexpr std::size_t longest_element = 64;
  const std::size_t element = call.bytes / call.count;
  if (common.bytes < longest_element) common.bytes = 0;
  common.count = common.bytes / element;
  common.bytes = common.count * element;
  return common;
}

// At the end: whether somebody has more for us than we expect, or less where that leaves a part of ours without a
// result, or is an error of the host's.
void report_lengths(const context::CollectiveContext& context, const Call& call) {
  const Operation& op = operation(call.collective);
  if (!op.gets.has(context.rank(), call.root)) return;
  Lengths lengths(context, call.bytes);
  const bool from_below = op.combines == Combines::up_to_own || op.combines == Combines::before_own;
  if (op.gives.who == Who::root) lengths.look(call.root, exposed_length(context, call.root));
  else
    for (int r = 0; r < (from_below ? context.rank() : context.size()); ++r)
      lengths.look(r, exposed_length(context, r));
  lengths.report(op.reduces() || (call.collective == Collective::bcast && context.team().exact_bcast));
}

}  // namespace

bool run(context::CollectiveContext& context, const Algorithm& algorithm, const Call& call) {
  if (algorithm.reach == staged) {
    algorithm.run(context, call);
    return true;
  }
  const Operation& op = operation(call.collective);
  gather_gaps(context, call);
  Buffer send = exposed(context, call, op.gives, call.send, algorithm.share),
         recv = exposed(context, call, op.gets, call.recv, algorithm.share);
  if (!(algorithm.reach & send_buffers)) send.bytes = 0;
  if (!(algorithm.reach & recv_buffers)) recv.bytes = 0;
  const struct Exposed {
    context::CollectiveContext& context;
    ~Exposed() { context.end_exposure(); }
  } ends{context};
  const std::uint64_t told = note_for_peers(call.bytes, in_place_at_root(context, call));
  if (algorithm.share) {
    const std::size_t parts = parts_of(context, call);
    const auto work = [&](std::size_t part) {
      const Slice ranks = share(std::size_t(context.size()), parts, part);
      const Call common = shortest(context, call);
      if (common.bytes) algorithm.share(context, common, int(ranks.begin), int(ranks.end));
    };
    // By reference: nothing is allocated, which could fail here alone.
    if (!context.work_exposed(send, recv, told, parts, std::ref(work))) return false;
    scatter_gaps(context, call);
    report_lengths(context, call);
    return true;
  }
  if (!context.meet_exposed(send, recv, told)) return false;
  const Call common = shortest(context, call);
  if (common.bytes) algorithm.run(context, common);
  report_lengths(context, call);
  return true;
}

std::span<const Algorithm> algorithms(Collective collective) {
  using Rows = std::span<const Algorithm> (*)();
  static constexpr Rows rows[] = {
#define OPERATION(name, ...) name##_rows,
#define OF_MESSAGES(name, ...)
#include "engine/collectives/operations.def"
  };
  return rows[std::size_t(collective)]();
}

}  // namespace nearfield::collectives
