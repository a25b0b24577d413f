// Memory in a process's shared heap (shared_heap.hpp). Each generation is one sealed memfd; a fork begins a new one.
//
// A peer gets the descriptor in a letter, or takes it from our table. A fork takes the heap out of reach right before
// it happens. A buffer is noted as in flight before it is described, so either the fork leaves it shared, or it
// has no description.
#include "engine/reach/heap_mapper.hpp"

#include <unistd.h>

#include "engine/base/globals.hpp"
#include "engine/reach/shared_heap.hpp"

namespace nearfield::reach {
namespace {

Result<std::uint64_t> open(Peers& self) {
  // Peers may have a heap where we have none.
  if (const SharedHeap* const heap = SharedHeap::find()) {
    globals().heap_peers.store(&self, std::memory_order_release);  // SYNC: forking
    heap->on_fork([](SharedHeap::Keep keep, void* context) {
      const Peers* const mine = globals().heap_peers.load(std::memory_order_acquire);  // SYNC: forking
      if (!mine) return;
      mine->in_flight_buffers.visit([&](const void* address, std::size_t bytes) { keep(address, bytes, context); });
    });
  }
  return std::uint64_t{0};
}

void close(Peers& self) {
  Peers* mine = &self;
  globals().heap_peers.compare_exchange_strong(mine, nullptr);
}

Result<void> meet(Peers&, Peer& peer, std::uint64_t) {
  heap_of(peer);
  return {};
}

RemoteBuffer place(const Peers&, std::size_t mapper, const void* address, std::size_t bytes) {
  const SharedHeap* const heap = SharedHeap::find();
  if (!heap || !heap->contains(address, bytes)) return {};
  const auto* const at = static_cast<const std::byte*>(address);
  const auto view = heap->current();
  if (view.generation == 0 || view.generation > RemoteBuffer::most_generations) return {};
  if (at < view.base || at + bytes > view.base + view.size) return {};
  heap->use(address, bytes);
  return RemoteBuffer(mapper, view.generation, std::uint64_t(at - view.base));
}

int descriptor(const Peers&, std::uint64_t generation) {
  const SharedHeap* const heap = SharedHeap::find();
  return heap ? heap->descriptor(generation) : -1;
}

Result<bool> offer(Peers& self, Peer& peer, const Region& region) {
  const std::uint64_t generation = region.generation();
  HeapOfPeer& theirs = heap_of(peer);
  if (theirs.sent > generation) return Error{"a fork happened meanwhile"};
  if (theirs.sent == generation) return true;
  const int fd = descriptor(self, generation);
  // A letter says so where the generation is gone, so that the peer does not wait for it.
  const bool gone = fd < 0;
  auto sent = self.mailbox().send(peer.card.address, gone ? self.segment().fd() : fd,
                                  letter(index_of(heap_mapper), generation, gone));
  if (!gone) ::close(fd);
  if (sent && *sent == Mailbox::Sent::again) return false;
  theirs.sent = generation;
  if (!sent) return sent.error();
  if (gone) return Error{"a fork happened meanwhile"};
  return true;
}

void take(Peers&, Peer& peer, std::uint64_t generation, Result<memory::PeerSegment> mapped) {
  HeapOfPeer& heap = heap_of(peer);
  if (generation <= heap.generation) return;
  heap.generation = generation;
  heap.mapped.reset();
  if (mapped) heap.mapped = std::make_shared<memory::PeerSegment>(std::move(*mapped));
  else heap.why = mapped.error().text;
}

Attached attach(Peers&, Peer& peer, const Region& region) {
  const HeapOfPeer& heap = heap_of(peer);
  if (heap.generation < region.generation()) return {.state = Attached::State::not_yet};
  if (heap.generation > region.generation()) return {.why = "a peer's heap has gone by a fork"};
  if (!heap.mapped) return {.why = heap.why};
  return {.state = Attached::State::yes, .at = heap.mapped->base(), .keep = heap.mapped};
}

}  // namespace

constinit const MemoryMapper heap_mapper = {
    .name = "heap",
    .title = "the shared heap",
    .part_of = "mapped",
    .about = "the bytes lie in the shared heap, which peers map when they first need it",
    .costs = {.access = 0.1, .call = 0, .attach = 50'000, .page = 250},
    .open = open,
    .meet = meet,
    .place = place,
    .offer = offer,
    .descriptor = descriptor,
    .take = take,
    .attach = attach,
    .close = close,
};

HeapOfPeer& heap_of(Peer& peer) { return kept<HeapOfPeer>(peer, heap_mapper); }

}  // namespace nearfield::reach
