// The fastbox of an ordered pair: a ring of records, one writer and one reader.
//
//   writer                                            reader
//   room? (reads `read` only when its last look       word = record.word (acquire); 0: empty
//          no longer suffices)                        reads the payload
//   next record's word = 0                            read += length; tells the writer once in a quarter of the ring
//   payload; record.word = kind | bytes (release)
//
// The word behind a record is cleared before the record is published, so the reader never takes old payload for a
// header. A record that does not fit before the end of the ring goes to its beginning, behind a `skip`.
#pragma once
#include <cstring>

#include "engine/messages/blocks.hpp"

namespace nearfield::messages {

constexpr std::uint64_t record_length(std::size_t payload) {
  return (record_header + payload + 63) & ~std::uint64_t{63};
}
// A ring with its words.
constexpr std::size_t bytes_of_fastbox(std::uint64_t ring_bytes) { return sizeof(Ring) + ring_bytes; }
constexpr std::size_t largest_payload(std::uint64_t capacity) { return capacity / 4 - record_header; }

class FastboxWriter {
 public:
  FastboxWriter() = default;
  // `ring` with `capacity` bytes (a power of two) of data behind it, not yet known to the reader.
  FastboxWriter(Ring* ring, std::uint64_t capacity) : ring_(ring), capacity_(capacity) {
    ring->read.store(0, std::memory_order_relaxed);
    ring->sample.store(0, std::memory_order_relaxed);
    at(0).word.store(0, std::memory_order_relaxed);
  }
  explicit operator bool() const { return ring_ != nullptr; }
  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t sample() const { return ring_->sample.load(std::memory_order_relaxed); }

  // A record for `payload` bytes to fill and publish; nullptr while there is no room.
  Record* reserve(std::size_t payload) {
    const std::uint64_t length = record_length(payload), offset = written_ & (capacity_ - 1);
    const std::uint64_t skip = offset + length > capacity_ ? capacity_ - offset : 0;
    // One line more than the record: the word behind it is cleared.
    if (written_ + skip + length + 64 - seen_ > capacity_) {
      seen_ = ring_->read.load(std::memory_order_acquire);  // SYNC: ring-read
      if (written_ + skip + length + 64 - seen_ > capacity_) return nullptr;
    }
    if (skip) {
      at(0).word.store(0, std::memory_order_relaxed);
      at(written_).word.store(record_word(Kind::skip, 0), std::memory_order_release);  // SYNC: ring-record
      written_ += skip;
    }
    return &at(written_);
  }
  void publish(Record* record, Kind kind, std::size_t payload) {
    written_ += record_length(payload);
    at(written_).word.store(0, std::memory_order_relaxed);
    record->word.store(record_word(kind, payload), std::memory_order_release);  // SYNC: ring-record
    // The lines that the next records clear and fill were read one turn of the ring ago: stores to them would wait for
    // the reader's cache, and all later stores behind them.
    __builtin_prefetch(&at(written_ + 64), 1);
    __builtin_prefetch(&at(written_ + ahead), 1);
  }

 private:
  Record& at(std::uint64_t position) const {
    return *reinterpret_cast<Record*>(ring_->data + (position & (capacity_ - 1)));
  }
  static constexpr std::uint64_t ahead = 512;  // bytes
  Ring* ring_ = nullptr;
  std::uint64_t capacity_ = 0, written_ = 0, seen_ = 0;
};

class FastboxReader {
 public:
  FastboxReader() = default;
  FastboxReader(Ring* ring, std::uint64_t capacity) : ring_(ring), capacity_(capacity) {}
  explicit operator bool() const { return ring_ != nullptr; }

  // The next record, with its word; nullptr when there is none.
  const Record* look(std::uint64_t& word) {
    const Record* record = at(read_);
    word = record->word.load(std::memory_order_acquire);  // SYNC: ring-record
    if (word == 0) return nullptr;
    if (kind_of(word) == Kind::skip) [[unlikely]] {
      read_ += capacity_ - (read_ & (capacity_ - 1));
      return look(word);
    }
    return record;
  }
  // What look() gave has been read.
  void take(std::uint64_t word) {
    read_ += record_length(bytes_of(word));
    if (read_ - told_ < capacity_ / 4) return;
    told_ = read_;
    ring_->read.store(read_, std::memory_order_release);  // SYNC: ring-read
  }
  void tell_sample(std::uint32_t ticks) {
    const std::uint64_t told = (ring_->sample.load(std::memory_order_relaxed) >> 32) + 1;
    ring_->sample.store(told << 32 | ticks, std::memory_order_relaxed);
  }

 private:
  const Record* at(std::uint64_t position) const {
    return reinterpret_cast<const Record*>(ring_->data + (position & (capacity_ - 1)));
  }
  Ring* ring_ = nullptr;
  std::uint64_t capacity_ = 0, read_ = 0, told_ = 0;
};

}  // namespace nearfield::messages
