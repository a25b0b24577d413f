// Reduce_scatter and Reduce_scatter_block: every member gets its part of a vector, all operands combined from left to
// right in rank order by every algorithm. Parts of Reduce_scatter have any lengths, those of Reduce_scatter_block are
// its blocks.
#include "engine/base/out_of_memory.hpp"
#include "engine/collectives/pieces/direct.hpp"
#include "engine/collectives/pieces/rings.hpp"
#include "engine/collectives/pieces/tree.hpp"
#include "engine/memory/temporaries.hpp"

namespace nearfield::collectives {
namespace {

// Division of the vector among members.
struct Division {
  const Call& call;
  const int size;
  const std::size_t element = call.bytes / call.count;
  const bool blocks = operation(call.collective).gives.amount == Amount::blocks;

  Division(const Call& call, const CollectiveContext& context) : call(call), size(context.size()) {}
  std::size_t count() const { return blocks ? call.count * std::size_t(size) : call.count; }  // elements of the vector
  // Returns the part of member r in bytes.
  Slice of(int r) const {
    if (blocks) return {std::size_t(r) * call.bytes, (std::size_t(r) + 1) * call.bytes};
    const Slice elements = part_of(call, size, r);
    return {elements.begin * element, elements.end * element};
  }
  std::size_t at(int r) const { return r < size ? of(r).begin : count() * element; }
  std::size_t longest() const {
    if (blocks) return call.bytes;
    std::size_t most = 0;
    for (int r = 0; r < size; ++r) most = std::max(most, of(r).size());
    return most;
  }
};

// Combines operands of `bytes` bytes each.
void combine_bytes(const Call& call, void* out, std::span<const void* const> inputs, std::size_t bytes) {
  if (bytes) combine(call, out, inputs, bytes / (call.bytes / call.count));
}

void slots(CollectiveContext& context, const Call& call) {
  const Division parts(call, context);
  const auto* in = static_cast<const std::byte*>(call.send);
  const Slice own = parts.of(context.rank());
  const bool overlaps = in == call.recv && own.begin > 0 && own.begin < own.size();  // our operand and our result
  all_by_slots(
      context, in, parts.count() * parts.element,
      [&](std::uint64_t seq) {
        const std::byte* const ours = overlaps ? context.slots.at(context.rank(), seq) : in;
        operands(context, ours + own.begin, [&](int r) { return context.slots.at(r, seq) + own.begin; });
      },
      [&](std::uint64_t) { combine_bytes(call, call.recv, context.inputs(), own.size()); });
}

// A member whose part is empty does not wait.
void line(CollectiveContext& context, const Call& call) {
  const Division parts(call, context);
  const std::size_t bytes = parts.count() * parts.element;
  const auto* in = static_cast<const std::byte*>(call.send);
  const Slice own = parts.of(context.rank());
  rooted_by_ring<Lines>(context, {context, call, bytes}, [&](Lines& ring, std::uint64_t seq, Lengths& lengths) {
    ring.publish(seq, in, bytes);
    if (!own.size()) return;
    const bool overlaps = in == call.recv && own.begin > 0 && own.begin < own.size();  // our operand and our result
    const std::byte* const ours = overlaps ? ring.at(context.rank(), seq) : in;
    const auto inputs = operands(context, ours + own.begin, [&](int r) {
      const std::byte* const theirs = ring.wait(r, seq);
      lengths.look(ring.bytes(r, seq));
      return theirs + own.begin;
    });
    combine_bytes(call, call.recv, inputs, own.size());
  });
}

// The first member reduces the whole vector into the slot that its children read on the way down.
void tree(CollectiveContext& context, const Call& call) {
  constexpr int root = 0;
  const Division parts(call, context);
  Slots& slots = context.slots;
  const std::uint64_t up = slots.next(), down = slots.next();
  Lengths lengths(context, call, parts.count() * parts.element);
  void* const all = context.rank() == root ? slots.reserve(down) : nullptr;
  reduce_up(context, slots, up, root, call, parts.count(), all, lengths);
  scatter_parts_down(
      context, slots, down, root, all, call.recv, slots.payload, [&](int r) { return parts.at(r); }, lengths);
  slots.have_met(up);
  lengths.report();
}

// Every round carries a piece of each part; the piece for the rank that follows us by i lies at place i - 1. In place,
// a rank's result overwrites the start of the vector, whose pieces all have been staged by then, since a byte is at
// least as far from the vector's start as from its part's. Its own operand may overlap its result.
void rounds(CollectiveContext& context, const Call& call) {
  const Division parts(call, context);
  const int p = context.size(), me = context.rank();
  const std::size_t longest = parts.longest();
  const std::size_t piece = round_bytes(context, longest, p - 1) / parts.element * parts.element;
  const std::size_t place = place_bytes(context, piece, p - 1);
  const auto* in = static_cast<const std::byte*>(call.send);
  auto* out = static_cast<std::byte*>(call.recv);
  auto piece_of = [&](int r, std::size_t k) -> Slice {
    const Slice part = parts.of(r);
    return {std::min(part.begin + k * piece, part.end), std::min(part.begin + (k + 1) * piece, part.end)};
  };
  const Slice own = parts.of(me);
  const bool overlaps = in == out && own.begin > 0 && own.begin < std::min(piece, own.size());
  const memory::Temporary aside(overlaps ? piece : 0);
  if (overlaps && !aside.data()) throw OutOfMemory();
  all_by_rounds(
      context, call.bytes, divide_up(longest, piece), BufferUse::folded_by_readers,
      [&](std::size_t) { return (p - 1) * place; },
      [&](std::size_t k, std::byte* buffer) {
        for (int i = 1; i < p; ++i) {
          const Slice theirs = piece_of((me + i) % p, k);
          stage_in(context, buffer + (i - 1) * place, in + theirs.begin, theirs.size());
        }
      },
      [](std::size_t) {},
      [&](std::size_t k, std::uint64_t tick) {
        const Slice mine = piece_of(me, k);
        const auto inputs = operands(context, in + mine.begin, [&](int r) {
          return context.rounds.buffer(r, tick) + ((me + p - r) % p - 1) * place;
        });
        std::byte* const to = out + (mine.begin - own.begin);
        combine_bytes(call, overlaps ? aside.data() : to, inputs, mine.size());
        if (overlaps) put(to, aside.data(), mine.size());
      });
}

// Every rank reduces its own part out of all send buffers. In place, others still read where its result goes, so it
// waits in a temporary until all have read.
void direct(CollectiveContext& context, const Call& call) {
  const Slice own = Division(call, context).of(context.rank());
  auto inputs = context.inputs();
  for (int r = 0; r < context.size(); ++r) inputs[r] = context.exchange.send_of(r) + own.begin;
  if (call.send != call.recv) {
    combine_bytes(call, call.recv, inputs, own.size());
    return finish_direct(context);
  }
  const memory::Temporary temporary(own.size());
  if (!temporary.data()) throw OutOfMemory();
  combine_bytes(call, temporary.data(), inputs, own.size());
  finish_direct(context);
  put(call.recv, temporary.data(), own.size());
}

// ---- estimates (costs.hpp) and conditions, by the bytes of the whole vector
std::size_t vector_bytes(const Shape& s, const Call& call) {
  return call.bytes * operation(call.collective).gives.each(s.size);
}
double slots_cost(const Shape& s, const Call& call) {
  const auto all = double(vector_bytes(s, call));
  return meeting_to_look(s) + copying(s, all, 0) + folding(s, all, 0);
}
double line_cost(const Shape& s, const Call& call) {
  const auto all = double(vector_bytes(s, call));
  return collecting(s) + copying(s, all, 0) + folding(s, all, 0);
}
double up_and_down_cost(const Shape& s, const Call& call) {
  const auto all = double(vector_bytes(s, call));
  return tree_cost(s, all * s.size, all) + folding(s, all * s.size, 0);
}
double rounds_cost(const Shape& s, const Call& call) {
  const auto all = double(vector_bytes(s, call)), own = all / s.size;
  const double others = all - own, working_set = all * (s.size + 1);
  if (s.oversubscribed()) return rounds_of(s, all) + copying(s, all, working_set) + folding(s, all, working_set);
  return rounds_of(s, others) + filling(s, others, working_set) + combining(s, others, own, working_set);
}
double direct_cost(const Shape& s, const Call& call) {
  const auto all = double(vector_bytes(s, call));
  return buffer_exchange(s) + folding(s, all, all * s.size) + copying(s, all / s.size, 0);
}
bool vector_fits_slot(const Shape& s, const Call& call) { return vector_bytes(s, call) <= context::slot_payload; }
bool vector_fits_line(const Shape& s, const Call& call) { return vector_bytes(s, call) <= context::line_payload; }
bool vector_up_fits(const Shape& s, const Call& call) {
  return s.size > 3 && vector_fits_slot(s, call) && branch_bytes(s, vector_bytes(s, call)) <= context::slot_payload;
}

template <Collective collective>
constexpr Algorithm rows[] = {
    {"line", collective, vector_fits_line, line_cost, line,
     "every rank puts all parts into its ring of short records, up to 120 bytes; a rank without a part does not wait"},
    {"slots", collective, vector_fits_slot, slots_cost, slots, "every rank puts all parts into its slot, up to 4 KiB"},
    {"tree", collective, vector_up_fits, up_and_down_cost, tree,
     "all parts climb the team's tree, and results come down; up to 4 KiB below a leader", staged, nullptr,
     worth_climbing},
    {"rounds", collective, buffer_has_places, rounds_cost, rounds,
     "every rank passes its parts on in pieces, through its copy buffers"},
    {"direct", collective, always, direct_cost, direct, "between user buffers: every rank reduces its part",
     send_buffers},
};

}  // namespace

std::span<const Algorithm> reduce_scatter_block_rows() { return rows<Collective::reduce_scatter_block>; }
std::span<const Algorithm> reduce_scatter_rows() { return rows<Collective::reduce_scatter>; }

}  // namespace nearfield::collectives
