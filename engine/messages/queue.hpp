// The receive queue: many writers, one reader, no lock (Nemesis).
//
//   enqueue(c)                                   dequeue, by the owner
//   c.next = 0                                   first = shadow, or else head (taken: head = 0)
//   last = tail.exchange(c)                      if first.next: shadow = first.next
//   last ? last.next = c : head = c              else tail.compare_exchange(first, 0): the queue is empty,
//                                                or somebody is between its exchange and its store of next: wait for it
//
// `shadow` is private to the reader, so that it need not touch the line of the writers while it has something left.
#pragma once
#include "engine/messages/blocks.hpp"
#include "engine/processor/processor.h"

namespace nearfield::messages {

// `cell_at(reference)` gives the Cell of a reference in this process's address space.
template <class CellAt>
void enqueue(MessageMailbox& box, Reference reference, CellAt cell_at) {
  cell_at(reference).next.store(0, std::memory_order_relaxed);
  // acq_rel: the cell's content goes to whoever enqueues behind it, and on to the reader.
  const Reference last = box.tail.exchange(reference, std::memory_order_acq_rel);  // SYNC: queue-tail
  if (last) cell_at(last).next.store(reference, std::memory_order_release);        // SYNC: queue-next
  else box.head.store(reference, std::memory_order_release);                       // SYNC: queue-head
}

// The first reference, 0 when there is none.
template <class CellAt>
Reference dequeue(MessageMailbox& box, Reference& shadow, CellAt cell_at) {
  if (!shadow) {
    if (box.head.load(std::memory_order_relaxed) == 0) return 0;
    shadow = box.head.load(std::memory_order_acquire);  // SYNC: queue-head
    box.head.store(0, std::memory_order_relaxed);
  }
  const Reference first = shadow;
  auto& next = cell_at(first).next;
  shadow = next.load(std::memory_order_acquire);  // SYNC: queue-next
  if (shadow) return first;
  Reference expected = first;
  // SYNC: queue-tail
  if (!box.tail.compare_exchange_strong(expected, 0, std::memory_order_acq_rel, std::memory_order_acquire)) {
    while (!(shadow = next.load(std::memory_order_acquire))) processor::pause();  // SYNC: queue-next
  }
  return first;
}

}  // namespace nearfield::messages
