// Small messages of operations in which everybody has something for everybody: payload and sequence number in the same
// lines, one meeting.
//
//   member      publish s   keep s | meet s   read everybody's slots of s
//
// Who publishes s + 1 has read s; a slot is filled again when all have published a later one than it held.
#pragma once
#include "engine/collectives/pieces/rings.hpp"

namespace nearfield::collectives {

// Publishes `bytes` of `payload`; keep(seq) does what needs no one else, while they arrive; read(seq) may read
// everybody's slots.
template <class Keep, class Read>
void all_by_slots(CollectiveContext& context, const void* payload, std::size_t bytes, Keep keep, Read read) {
  const std::uint64_t seq = context.next_slot();
  stage(context.reserve_slot(seq), payload, bytes);
  context.publish_slot(seq, bytes);
  keep(seq);
  context.meet_slots(seq);
  Lengths lengths(context, bytes);
  lengths.look_at_slots(seq);
  read(seq);
  lengths.report();
}

}  // namespace nearfield::collectives
