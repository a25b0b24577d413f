// The board of a partitioned message that is short as a whole. It is room in the segment of the sender for the
// partitions of two starts, with a flag for each. To send a partition any thread copies it and sets its flag, without a
// lock.
//
//   sender, start k                                     receiver, start k
//   partition i is ready; it waits until
//     consumed >= k - 2 (acquire): half k % 2 is free
//   copies it into the half
//   ready[i] of the half = k (release) ---------------> asked for i: ready[i] == k (acquire): copies it out
//   it was the last: whole = k (release) -------------> waiting for all: whole == k (acquire): copies them out
//                                                       all are out: consumed = k (release)
//
// A receiver that waits for all partitions does not read the flags, whose lines the sender still writes.
//
// Starts are numbered from 1 on both sides. A sender only waits for an earlier start, which the receiver completes in
// its own calls, so the receiver need not poll boards elsewhere.
#pragma once
#include <cstring>

#include "engine/layout/layout.hpp"
#include "engine/messages/blocks.hpp"

namespace nearfield::messages {

struct Board {
  alignas(line) Atomic<std::uint64_t> consumed;  // receiver: starts whose data it has copied out
  alignas(line) Atomic<std::uint64_t> whole;     // sender: the last start of which all partitions are there
  alignas(line) std::byte rest[];                // flags, then data, of either half
};

struct Partitions {
  std::uint64_t count, bytes;  // bytes of each
  std::uint64_t all() const { return count * bytes; }
};

// Both sides' view of a board.
class BoardView {
 public:
  using Flag = Atomic<std::uint32_t>;  // sender: number of the start whose partition is there
  static constexpr std::uint64_t most_bytes = 64 << 10, most_partitions = 4096;
  static bool serves(const Partitions& p) { return p.count && p.count <= most_partitions && p.all() <= most_bytes; }
  static std::uint64_t size(const Partitions& p) { return sizeof(Board) + 2 * half(p); }

  BoardView() = default;
  BoardView(std::byte* at, const Partitions& partitions)
      : board_(reinterpret_cast<Board*>(at)), partitions_(partitions) {}
  explicit operator bool() const { return board_ != nullptr; }

  // ---- sender
  bool room(std::uint64_t start) const {
    return board_->consumed.load(std::memory_order_acquire) + 2 >= start;  // SYNC: board-consumed
  }
  bool through(std::uint64_t start) const {
    return board_->consumed.load(std::memory_order_acquire) >= start;  // SYNC: board-consumed
  }
  // pre: room(start)
  void put(std::uint64_t start, std::uint64_t partition, const layout::Data& data) const {
    layout::gather(this->data(start) + partition * partitions_.bytes, data, 0, partitions_.bytes);
    flags(start)[partition].store(std::uint32_t(start), std::memory_order_release);  // SYNC: board-partition
  }
  // pre: all partitions have been put, and the caller has synchronised with the threads that did it.
  void put_last(std::uint64_t start) const {
    board_->whole.store(start, std::memory_order_release);  // SYNC: board-whole
  }

  // ---- receiver
  bool all_there(std::uint64_t start) const {
    return board_->whole.load(std::memory_order_acquire) >= start;  // SYNC: board-whole
  }
  bool there(std::uint64_t start, std::uint64_t partition) const {
    return flags(start)[partition].load(std::memory_order_acquire) == std::uint32_t(start);  // SYNC: board-partition
  }
  // The data of all partitions, one behind the other; pre: there().
  std::byte* data(std::uint64_t start) const {
    return board_->rest + start % 2 * half(partitions_) + bytes_of_flags(partitions_);
  }
  void consume(std::uint64_t start) const {
    board_->consumed.store(start, std::memory_order_release);  // SYNC: board-consumed
  }

 private:
  static constexpr std::uint64_t rounded(std::uint64_t bytes) { return (bytes + line - 1) / line * line; }
  static std::uint64_t bytes_of_flags(const Partitions& p) { return rounded(p.count * sizeof(Flag)); }
  static std::uint64_t half(const Partitions& p) { return bytes_of_flags(p) + rounded(p.all()); }
  Flag* flags(std::uint64_t start) const {
    return reinterpret_cast<Flag*>(board_->rest + start % 2 * half(partitions_));
  }
  Board* board_ = nullptr;
  Partitions partitions_{};
};

}  // namespace nearfield::messages
