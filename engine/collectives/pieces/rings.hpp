// Short data go by the two rings of records (context/connector.hpp). Rooted operations use either ring. Operations in
// which all members have data for all use slots:
//
//   member      publish s   keep s | meet s   read all slots of s
//
// A member that publishes s + 1 has read s. So a slot may be filled again when all have published a later number than
// the slot's.
#pragma once
#include "engine/collectives/pieces/lengths.hpp"
#include "engine/collectives/pieces/rounds.hpp"

namespace nearfield::collectives {

using context::Lines, context::Slots;

template <class Ring>
Ring& ring_of(CollectiveContext& context) {
  if constexpr (std::is_same_v<Ring, Lines>) return context.lines;
  else return context.slots;
}

// Whether a member that only gives can do its part now.
template <class Ring>
bool ready(CollectiveContext& context, const Call&) {
  return ring_of<Ring>(context).ready();
}
// For algorithms along a tree, which use either ring, depending on the call.
inline bool rings_ready(CollectiveContext& context, const Call&) {
  return context.lines.ready() && context.slots.ready();
}

// Runs a rooted operation, or another in which members wait for some of the others only: use(ring, seq, lengths)
// publishes and reads, and notes what lengths it sees.
template <class Ring, class Use>
void rooted_by_ring(CollectiveContext& context, Lengths lengths, Use use) {
  Ring& ring = ring_of<Ring>(context);
  const std::uint64_t seq = ring.next();
  use(ring, seq, lengths);
  ring.consume(seq);
  lengths.report();
}

// Publishes `bytes` of `payload`; keep(seq) does work that needs no other member; read(seq) may read all members'
// slots.
template <class Keep, class Read>
void all_by_slots(CollectiveContext& context, const void* payload, std::size_t bytes, Keep keep, Read read) {
  Slots& slots = context.slots;
  const std::uint64_t seq = slots.next();
  slots.publish(seq, payload, bytes);
  keep(seq);
  slots.meet(seq);
  compare_lengths(context, bytes, [&](int r) { return slots.bytes(r, seq); }, [] {});
  read(seq);
}

}  // namespace nearfield::collectives
