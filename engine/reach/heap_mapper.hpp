// What is kept of a peer's shared heap.
#pragma once
#include "engine/reach/peers.hpp"

namespace nearfield::reach {

struct HeapOfPeer : MapperState {
  // The newest one that the peer has passed to us; what it lies in stays mapped until nobody uses it. nullptr: gone.
  std::shared_ptr<memory::PeerSegment> mapped;
  std::uint64_t generation = 0;
  std::uint64_t sent = 0;  // generation of ours that the peer has been given
};
HeapOfPeer& heap_of(Peer& peer);

}  // namespace nearfield::reach
