// The receive queue: many writers, one reader, no lock (Nemesis).
//
//   enqueue(c)                                   dequeue, by the owner
//   c.next = 0                                   first = shadow, or else head (taken: head = 0)
//   last = tail.exchange(c)                      if first.next: shadow = first.next
//   last ? last.next = c : head = c              else tail.compare_exchange(first, 0): the queue is empty,
//                                                or a sender is between its exchange and its store of next. It may be
//                                                stopped there, so the owner does not wait: first is taken, but its
//                                                cell is kept (unlinked) and no more are taken until it has its next
//
// The owner keeps a QueueReader in private memory, so it need not touch the line of the senders while entries are left.
#pragma once
#include "engine/messages/blocks.hpp"

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

struct QueueReader {
  Reference shadow = 0;    // the first entry that is left; 0: unknown, see `head`
  Reference unlinked = 0;  // the last one taken, if others are behind it but its next is missing; 0: none
  bool any() const { return shadow || unlinked; }
};

// Takes the first entry out of the queue; 0: there is none. pre: release() has been called for the one before.
template <class CellAt>
Reference dequeue(MessageMailbox& box, QueueReader& reader, CellAt cell_at) {
  if (reader.unlinked) [[unlikely]] {
    Cell& last = cell_at(reader.unlinked);
    reader.shadow = last.next.load(std::memory_order_acquire);  // SYNC: queue-next
    if (!reader.shadow) return 0;
    reader.unlinked = 0;
    last.busy.store(0, std::memory_order_release);  // SYNC: cell-busy
  }
  if (!reader.shadow) {
    if (box.head.load(std::memory_order_relaxed) == 0) return 0;
    reader.shadow = box.head.load(std::memory_order_acquire);  // SYNC: queue-head
    box.head.store(0, std::memory_order_relaxed);
  }
  const Reference first = reader.shadow;
  auto& next = cell_at(first).next;
  reader.shadow = next.load(std::memory_order_acquire);  // SYNC: queue-next
  if (reader.shadow) return first;
  Reference expected = first;
  // SYNC: queue-tail
  if (!box.tail.compare_exchange_strong(expected, 0, std::memory_order_acq_rel, std::memory_order_acquire)) {
    reader.shadow = next.load(std::memory_order_acquire);  // SYNC: queue-next
    if (!reader.shadow) reader.unlinked = first;
  }
  return first;
}

// Returns a cell that has been read to its sender, unless dequeue() still needs its `next`.
inline void release(const QueueReader& reader, Reference reference, Cell& cell) {
  if (reference != reader.unlinked) [[likely]]
    cell.busy.store(0, std::memory_order_release);  // SYNC: cell-busy
}

}  // namespace nearfield::messages
