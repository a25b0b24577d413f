// What the heap mapper keeps of a peer (Peer::kept).
#pragma once
#include "engine/reach/peers.hpp"

namespace nearfield::reach {

struct HeapOfPeer : MapperState {
  // The newest generation that the peer has sent; attachments share its ownership. nullptr: it cannot be had.
  std::shared_ptr<memory::PeerSegment> mapped;
  std::string why;  // why it cannot be had
  std::uint64_t generation = 0;
  std::uint64_t sent = 0;  // generation of ours that the peer has been sent
};
HeapOfPeer& heap_of(Peer& peer);

}  // namespace nearfield::reach
