// Allreduce. Operands are combined from left to right in rank order by every algorithm, so that the same input gives
// the same bits whatever the path.
#include "engine/collectives/pieces/direct.hpp"
#include "engine/collectives/pieces/partitioned.hpp"
#include "engine/collectives/pieces/rings.hpp"
#include "engine/collectives/pieces/tree.hpp"

namespace nearfield::collectives {
namespace {

void slots(CollectiveContext& context, const Call& call) {
  all_by_slots(
      context, call.send, call.bytes,
      [&](std::uint64_t seq) { operands(context, call.send, [&](int r) { return context.slots.at(r, seq); }); },
      [&](std::uint64_t) { combine(call, call.recv, context.inputs(), call.count); });
}

void tree(CollectiveContext& context, const Call& call) {
  constexpr int root = 0;
  Slots& slots = context.slots;
  const std::uint64_t up = slots.next(), down = slots.next();
  Lengths lengths(context, call);
  reduce_up(context, slots, up, root, call, call.count, call.recv, lengths);
  pass_down(context, slots, down, root, call.recv, call.recv, call.bytes, lengths);
  slots.have_met(up);
  lengths.report();
}

// Every member stages all of its operand and reduces all operands: one barrier, p times the arithmetic.
void oneshot(CollectiveContext& context, const Call& call) {
  all_by_rounds(
      context, call.bytes, 1, BufferUse::folded_by_readers, [&](std::size_t) { return call.bytes; },
      [&](std::size_t, std::byte* buffer) { stage_in(context, buffer, call.send, call.bytes); }, [](std::size_t) {},
      [&](std::size_t, std::uint64_t tick) {
        const auto inputs = operands(context, call.send, [&](int r) { return context.rounds.buffer(r, tick); });
        combine(call, call.recv, inputs, call.count);
      });
}

// Every rank reduces its share of all send buffers in registers and stores the result into all receive buffers: every
// byte is loaded once and stored once, 2ps of traffic, the lower bound.
void shares(CollectiveContext& context, const Call& call, int first, int last) {
  reduce_direct(context, call, first, last, {0, std::size_t(context.size())});
}

void direct(CollectiveContext& context, const Call& call) {
  shares(context, call, context.rank(), context.rank() + 1);
  finish_direct(context);
}

void direct_blocks(CollectiveContext& context, const Call& call) {
  reduce_direct<Outputs::pieces>(context, call, context.rank(), context.rank() + 1, {0, std::size_t(context.size())});
  finish_direct(context);
}

// The same with fewer streams of stores: every rank stores its share into its own buffer, then fetches the others'.
void direct_pull(CollectiveContext& context, const Call& call) {
  const int p = context.size(), me = context.rank();
  const std::size_t element = call.bytes / call.count;
  reduce_direct(context, call, me, me + 1, {std::size_t(me), std::size_t(me) + 1});
  finish_direct(context);  // all shares are reduced now
  const auto store = store_for(context, 2 * call.bytes * std::size_t(p));
  for (int i = 1; i < p; ++i) {
    const int r = (me + i) % p;
    const Slice theirs = line_share(call.count, element, p, r);
    put(static_cast<std::byte*>(call.recv) + theirs.begin * element,
        context.exchange.recv_of(r) + theirs.begin * element, theirs.size() * element, store);
  }
  finish_direct(context);
}

void partitioned(CollectiveContext& context, const Call& call) { reduce_by_shares(context, call, true); }

// ---- estimates (costs.hpp)
double slots_cost(const Shape& s, const Call& call) {
  return meeting_to_look(s) + copying(s, in_bytes(call), 0) + folding(s, in_bytes(call) * s.size, 0);
}
double up_and_down_cost(const Shape& s, const Call& call) {
  return tree_cost(s, in_bytes(call) * s.size, in_bytes(call)) + folding(s, in_bytes(call) * s.size, 0);
}
double oneshot_cost(const Shape& s, const Call& call) {
  const double n = in_bytes(call), all = n * (s.size + 2);
  if (!s.oversubscribed()) return rounds_of(s, n) + filling(s, n, all) + combining(s, n * (s.size - 1), n, all);
  return meeting_to_look(s) + constants::oversubscribed_round_lines * s.machine.line + copying(s, in_bytes(call), 0) +
         folding(s, in_bytes(call) * s.size, 0);
}
double partitioned_cost(const Shape& s, const Call& call) { return by_shares(s, in_bytes(call), 2 * s.size); }
double direct_cost(const Shape& s, const Call& call) {
  const double all = 2 * in_bytes(call) * s.size;
  return buffer_exchange(s) + folding(s, in_bytes(call), all) + copying(s, in_bytes(call), all);
}
double direct_pull_cost(const Shape& s, const Call& call) {
  const double all = 2 * in_bytes(call) * s.size;
  return buffer_exchange(s) + meeting(s) + folding(s, in_bytes(call), all) + copying(s, in_bytes(call), all);
}

constexpr Algorithm rows[] = {
    {"slots", Collective::allreduce, fits_slot, slots_cost, slots,
     "every rank puts its vector into its slot, and reduces all of them; up to 4 KiB"},
    {"tree", Collective::allreduce, up_fits, up_and_down_cost, tree,
     "vectors climb the team's tree, and the result comes down; up to 4 KiB below a leader", staged, nullptr,
     worth_climbing},
    {"oneshot", Collective::allreduce, fits_buffer, oneshot_cost, oneshot,
     "every rank copies its vector to its copy buffer once, and reduces all of them"},
    {"partitioned", Collective::allreduce, always, partitioned_cost, partitioned,
     "the vectors pass through copy buffers in rounds; every rank reduces its share of each"},
    {"direct", Collective::allreduce, always, direct_cost, direct,
     "between user buffers: every rank reduces its share and stores it to all ranks", all_buffers, nullptr, nullptr, 2},
    {"direct-blocks", Collective::allreduce, always, direct_cost, direct_blocks,
     "as direct, but in blocks, by stores that do not fetch the others' cache lines first", all_buffers},
    {"direct-pull", Collective::allreduce, always, direct_pull_cost, direct_pull,
     "between user buffers: every rank reduces its share and fetches the other shares", all_buffers},
    {"together", Collective::allreduce, always, together, nullptr,
     "between user buffers: the ranks that have a CPU reduce the shares of all ranks", all_buffers, shares},
};

}  // namespace

std::span<const Algorithm> allreduce_rows() { return rows; }

}  // namespace nearfield::collectives
