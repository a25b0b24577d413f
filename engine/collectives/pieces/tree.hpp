// Small messages along the team's tree (team/tree.hpp), payload and sequence number in the same lines.
//
//   up     leaves publish; inner members wait for their children, gather or combine, publish; the root has all data
//   down   the root publishes; inner members wait for their parent, publish again, and take their part
//
// A member that finds another length than its own below it publishes no data but no_length. The root does the same if
// it passes down what has come up. So all members that get something have an error then.
//
// Operands whose result depends on the order travel side by side, and the receivers combine them from left to right in
// rank order, as every other algorithm does. Integers are combined on the way.
#pragma once
#include "engine/collectives/pieces/folding.hpp"
#include "engine/collectives/pieces/rings.hpp"

namespace nearfield::collectives {

// Gathers the blocks of the members below us, `bytes` each in rank order, and publishes them. The root copies nothing:
// blocks[r] points to the block of member r.
template <class Ring>
void gather_up(CollectiveContext& context, Ring& ring, std::uint64_t seq, int root, const void* own, std::size_t bytes,
               std::span<const void*> blocks, Lengths& lengths) {
  const team::Tree& tree = context.tree();
  const int me = context.rank();
  if (me == root) {
    tree.each_part(me, root, [&](int part) {
      const auto* from = part == me ? static_cast<const std::byte*>(own) : ring.wait(part, seq);
      const int last = part == me ? me + 1 : tree.subtree(part, root).last;
      if (part != me) lengths.note(ring.bytes(part, seq) != bytes * std::size_t(last - part));
      for (int r = part; r < last; ++r) blocks[r] = from + (r - part) * bytes;
    });
    return;
  }
  const auto all = tree.subtree(me, root);
  std::byte* const out = ring.reserve(seq);
  tree.each_part(me, root, [&](int part) {
    std::byte* const to = out + (part - all.first) * bytes;
    if (part == me) return stage(to, own, bytes);
    const std::size_t theirs = bytes * std::size_t(tree.subtree(part, root).size());
    stage(to, ring.wait(part, seq), theirs);
    lengths.note(ring.bytes(part, seq) != theirs);
  });
  ring.publish(seq, lengths.differ() ? context::no_length : bytes * std::size_t(all.size()));
}

// Combines the vectors of `count` elements of the members below us in rank order, and publishes the result; the root
// stores it to `out`. pre: the operator is associative on that type.
template <class Ring>
void fold_up(CollectiveContext& context, Ring& ring, std::uint64_t seq, int root, const Call& call, std::size_t count,
             void* out, Lengths& lengths) {
  const int me = context.rank();
  const auto inputs = context.inputs();
  std::size_t n = 0;
  if (me != root) out = ring.reserve(seq);
  const std::size_t bytes = call.bytes / call.count * count;
  context.tree().each_part(me, root, [&](int part) {
    inputs[n++] = part == me ? call.send : ring.wait(part, seq);
    if (part != me) lengths.note(ring.bytes(part, seq) != bytes);
  });
  combine(call, out, inputs.first(n), count);
  if (me != root) ring.publish(seq, lengths.differ() ? context::no_length : bytes);
}

// The same for any operator and type.
template <class Ring>
void reduce_up(CollectiveContext& context, Ring& ring, std::uint64_t seq, int root, const Call& call, std::size_t count,
               void* out, Lengths& lengths) {
  if (reducing::associative(call.type)) return fold_up(context, ring, seq, root, call, count, out, lengths);
  gather_up(context, ring, seq, root, call.send, call.bytes / call.count * count, context.inputs(), lengths);
  if (context.rank() == root) combine(call, out, context.inputs(), count);
}

// Passes the root's `bytes` bytes, at `payload` there, to `recv` of all others.
template <class Ring>
void pass_down(CollectiveContext& context, Ring& ring, std::uint64_t seq, int root, const void* payload, void* recv,
               std::size_t bytes, Lengths& lengths) {
  const int me = context.rank();
  const bool inner = context.tree().subtree(me, root).size() > 1;
  const int parent = context.tree().parent(me, root);
  const void* const from = me == root ? payload : ring.wait(parent, seq);
  const std::size_t published = me != root ? ring.bytes(parent, seq) : lengths.differ() ? context::no_length : bytes;
  const bool whole = published != context::no_length;
  if (inner) {
    if (whole) stage(ring.reserve(seq), from, published);
    else ring.reserve(seq);
    ring.publish(seq, published);
  }
  if (me == root) return;
  if (whole) put(recv, from, std::min(published, bytes));
  lengths.note(
      unequal(context, Collective::bcast, published, bytes));  // any other operation has found it on the way up
}

// Every member gets its part of the root's vector, up to `most` bytes; at(r): bytes of the vector before member r's
// part. Members that disagree about at() get other bytes of the ring than they expect.
template <class Ring, class At>
void scatter_parts_down(CollectiveContext& context, Ring& ring, std::uint64_t seq, int root, const void* payload,
                        void* recv, std::size_t most, At at, Lengths& lengths) {
  const team::Tree& tree = context.tree();
  const int me = context.rank(), parent = tree.parent(me, root);
  const auto all = tree.subtree(me, root);
  const auto* from = static_cast<const std::byte*>(payload);
  if (me != root) {
    from = ring.wait(parent, seq) + (at(all.first) - at(tree.subtree(parent, root).first));
    lengths.note(ring.bytes(parent, seq) == context::no_length);
  }
  if (all.size() > 1) {
    const std::size_t bytes = at(all.last) - at(all.first);
    stage(ring.reserve(seq), from, bytes);
    ring.publish(seq, lengths.differ() ? context::no_length : bytes);
  }
  put(recv, from + (at(me) - at(all.first)), std::min(at(me + 1) - at(me), most));
}

// The same for blocks, with the root's length.
template <class Ring>
void scatter_down(CollectiveContext& context, Ring& ring, std::uint64_t seq, int root, const void* payload, void* recv,
                  std::size_t bytes, Lengths& lengths) {
  std::size_t each = bytes;
  if (const int me = context.rank(); me != root) {
    const int parent = context.tree().parent(me, root);
    ring.wait(parent, seq);
    each = ring.bytes(parent, seq) / std::size_t(context.tree().subtree(parent, root).size());
  }
  const auto at = [&](int r) { return each * std::size_t(r); };
  scatter_parts_down(context, ring, seq, root, payload, recv, bytes, at, lengths);
  lengths.look(each);
}

// Runs a rooted operation, whose records have up to `bytes` bytes, by the smaller ring that they fit.
template <class Run>
void rooted_by_tree(CollectiveContext& context, const Call& call, std::size_t bytes, Run run) {
  if (bytes <= Lines::payload) rooted_by_ring<Lines>(context, {context, call}, run);
  else rooted_by_ring<Slots>(context, {context, call}, run);
}

// ---- conditions and estimates
// Bytes of all members below a child of the root, which must fit a slot. (Vectors that are combined on the way need
// less, but conditions must not depend on types.)
inline std::size_t branch_bytes(const Shape& s, std::size_t bytes) {
  return bytes * std::size_t(s.tree.largest_branch());
}
inline bool up_fits(const Shape& s, const Call& call) {
  return s.size > 3 && fits_slot(s, call) && branch_bytes(s, call.bytes) <= context::slot_payload;
}
inline bool all_up_fit(const Shape& s, const Call& call) {
  return s.size > 3 && all_fit_slot(s, call) &&
         branch_bytes(s, call.bytes * std::size_t(s.size)) <= context::slot_payload;
}
inline bool down_fits(const Shape& s, const Call& call) { return s.size > 3 && fits_slot(s, call); }
inline bool all_down_fit(const Shape& s, const Call& call) { return s.size > 3 && all_fit_slot(s, call); }

inline double tree_cost(const Shape& s, double bytes_up, double bytes_down) {
  const double levels = s.tree.levels();
  return (bytes_up >= 0 ? climb(s) + copying(s, bytes_up, 0) : 0) +
         (bytes_down >= 0 ? climb(s) + levels * copying(s, bytes_down, 0) : 0);
}
// Members of teams whose barrier is not a tree reach each other by a few lines.
inline bool worth_climbing(const Shape& s, const Call&) { return s.meeting == Meeting::tree; }

}  // namespace nearfield::collectives
