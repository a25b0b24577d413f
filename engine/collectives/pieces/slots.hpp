// Small messages of operations in which all members have data for all: payload and sequence number share lines, and
// there is one barrier.
//
//   member      publish s   keep s | meet s   read all slots of s
//
// A member that publishes s + 1 has read s; a slot is filled again when all have published a later one than it holds.
#pragma once
#include "engine/collectives/pieces/rings.hpp"

namespace nearfield::collectives {

// Publishes `bytes` of `payload`; keep(seq) does work that needs no other member; read(seq) may read all members'
// slots.
template <class Keep, class Read>
void all_by_slots(CollectiveContext& context, const void* payload, std::size_t bytes, Keep keep, Read read) {
  const std::uint64_t seq = context.next_slot();
  stage(context.reserve_slot(seq), payload, bytes);
  context.publish_slot(seq, bytes);
  keep(seq);
  context.meet_slots(seq);
  compare_lengths(context, bytes, [&](int r) { return context.slot_bytes(r, seq); });
  read(seq);
}

}  // namespace nearfield::collectives
