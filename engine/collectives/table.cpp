#include <bit>

#include "engine/collectives/pieces/direct.hpp"
#include "engine/collectives/pieces/gaps.hpp"

namespace nearfield::collectives {

namespace {

using Buffer = context::BufferExchange::Buffer;

// Returns the buffer that peers may load or store. `own`: also the root's buffer that only the root copies, since
// members may do each other's copies.
Buffer exchanged(const context::CollectiveContext& context, const Call& call, const Contribution& side, const void* at,
                 bool own) {
  const Operation& op = operation(call.collective);
  const bool private_copy = op.rooted() && !op.reduces() && side.who == Who::all && context.rank() == call.root && !own;
  const std::size_t blocks = private_copy ? 0 : side.blocks(context.rank(), context.size(), call.root);
  return {const_cast<void*>(at), blocks * call.bytes};
}

// True if we are a root whose own block needs no copy; the root then copies a part of the others'.
bool in_place_at_root(const context::CollectiveContext& context, const Call& call) {
  if (context.rank() != call.root || !rooted(call.collective)) return false;
  const Operation& op = operation(call.collective);
  const auto *const send = static_cast<const std::byte*>(call.send), *const recv =
                                                                         static_cast<const std::byte*>(call.recv);
  const std::size_t at = op.in_place_at(call.root, call.bytes);
  return (op.in_place == InPlace::own_block_of_recv && send == recv + at) ||
         (op.in_place == InPlace::own_block_of_send && recv == send + at);
}

// Returns the number of parts to share out: some for every CPU, but none too short.
std::size_t parts_of(const context::CollectiveContext& context, const Call& call) {
  constexpr std::size_t least = 64 << 10;  // bytes of one part
  const auto p = std::size_t(context.size());
  const Contribution& gets = operation(call.collective).gets;
  const std::size_t blocks = gets.who == Who::all ? gets.each(context.size()) : 1;
  const auto cpus = std::size_t(double(p) / context.shape().ranks_per_cpu + 0.5);
  return std::clamp<std::size_t>(std::bit_ceil(call.bytes) * p * blocks / least, 1,
                                 std::min(p, 4 * std::max<std::size_t>(cpus, 1)));
}

// Whether members' lengths differ so that some member has an error. All members see the same, and end the call then,
// before anything has moved.
struct Compared {
  bool differ = false, in_step = true;
};
Compared compare_exchanged(const context::CollectiveContext& context, const Call& call) {
  const Operation& op = operation(call.collective);
  const bool from_root = op.gives.who == Who::root;
  const std::size_t of_root = exchanged_length(context, op.rooted() ? call.root : context.rank());
  Compared found;
  for (int r = 0; r < context.size(); ++r) {
    const std::size_t theirs = exchanged_length(context, r);
    if (theirs == of_root) [[likely]]
      continue;
    found.differ |= unequal(context, call.collective, from_root ? of_root : theirs, from_root ? theirs : of_root);
    if (theirs == context::no_length || of_root == context::no_length) found = {true, false};
  }
  return found;
}
void report_exchanged(const context::CollectiveContext& context, const Call& call) {
  if (const Compared found = compare_exchanged(context, call); found.differ) [[unlikely]]
    context.calls.report_lengths(found.in_step);
}

// Returns the call as its row runs it: a vector that is longer than the root's is filled as far as that goes; blocks
// exchanged_block() cuts.
Call as_sent(const context::CollectiveContext& context, const Call& call) {
  Call sent = call;
  if (call.collective == Collective::bcast) sent.bytes = std::min(call.bytes, exchanged_length(context, call.root));
  return sent;
}

}  // namespace

bool run(context::CollectiveContext& context, const Algorithm& algorithm, const Call& call) {
  if (algorithm.reach == staged) {
    algorithm.run(context, call);
    return true;
  }
  const Operation& op = operation(call.collective);
  gather_gaps(context, call);
  Buffer send = exchanged(context, call, op.gives, call.send, algorithm.share),
         recv = exchanged(context, call, op.gets, call.recv, algorithm.share);
  if (!(algorithm.reach & send_buffers)) send.bytes = 0;
  if (!(algorithm.reach & recv_buffers)) recv.bytes = 0;
  const struct EndsExchange {
    context::BufferExchange& exchange;
    ~EndsExchange() { exchange.end(); }
  } ends{context.exchange};
  const std::uint64_t note = note_for_peers(call.bytes, in_place_at_root(context, call));
  if (algorithm.share) {
    const std::size_t parts = parts_of(context, call);
    const auto work = [&](std::size_t part) {
      const Slice ranks = share(std::size_t(context.size()), parts, part);
      if (!compare_exchanged(context, call).differ)
        algorithm.share(context, as_sent(context, call), int(ranks.begin), int(ranks.end));
    };
    if (!context.exchange.work(send, recv, note, parts, work)) return false;
    report_exchanged(context, call);
    scatter_gaps(context, as_sent(context, call));
    return true;
  }
  const bool reached = context.exchange.begin(send, recv, note);
  report_exchanged(context, call);
  if (!reached) return false;
  algorithm.run(context, as_sent(context, call));
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
