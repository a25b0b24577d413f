// Memory in the process's own segment (MPI_Alloc_mem), which every peer has mapped.
#include "engine/reach/peers.hpp"

namespace nearfield::reach {
namespace {

Result<std::uint64_t> open(Peers&) { return std::uint64_t{0}; }
Result<void> meet(Peers&, Peer&, std::uint64_t) { return {}; }

RemoteBuffer place(const Peers& self, std::size_t mapper, const void* address, std::size_t bytes) {
  const memory::Segment& segment = self.segment();
  if (!segment.contains(address, bytes)) return {};
  return RemoteBuffer(mapper, 0, std::size_t(static_cast<const std::byte*>(address) - segment.base()));
}

// Returns no Attached::keep, since a peer's segment stays mapped.
Attached attach(Peers&, Peer& peer, const Region&) {
  return {.state = Attached::State::yes, .at = peer.segment.base()};
}

}  // namespace

constinit const MemoryMapper segment_mapper = {
    .name = "mapped",
    .title = "a segment",
    .about = "the bytes lie in memory that the peer has mapped",
    .costs = {.access = 0.1, .call = 0, .attach = 0, .page = 250},
    .standing = true,
    .open = open,
    .meet = meet,
    .place = place,
    .attach = attach,
};

}  // namespace nearfield::reach
