// The fastbox of an ordered pair: a ring of records, one writer and one reader.
//
//   writer                                            reader
//   room? (reads `read` only when its last look       word = record.word (acquire); another number: empty
//          no longer suffices)                        reads the payload
//   what lies behind the record has the number of     read += length; tells the writer once in a quarter of the ring
//     the next one? then another word there
//   payload; record.word = number | kind | bytes
//     (release)
//
// Where the reader looks next lies what was written one turn before, a header or payload. It is no header to the
// reader, since it has not the number of the record that is awaited there: the writer sees to that before it publishes
// the record in front of it, and nobody writes there between that and the header itself. The
// check is cheap, since the writer owns that line. Clearing the word every time would need a store, which takes the
// line from the reader.
//
// A record that does not fit before the end of the ring goes to its beginning, behind a `skip`.
#pragma once
#include <algorithm>

#include "engine/messages/blocks.hpp"

namespace nearfield::messages {

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
    clear(0, number_);
  }
  explicit operator bool() const { return ring_ != nullptr; }
  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t sample() const { return ring_->sample.load(std::memory_order_relaxed); }

  // A record for `payload` bytes to fill and publish; nullptr while there is no room.
  Record* reserve(std::size_t payload) {
    const std::uint64_t length = record_length(payload), offset = written_ & (capacity_ - 1);
    const std::uint64_t skip = offset + length > capacity_ ? capacity_ - offset : 0;
    // One line more than the record: the word behind it may have to be another one.
    if (written_ + skip + length + 64 - seen_ > capacity_) [[unlikely]] {
      seen_ = ring_->read.load(std::memory_order_acquire);  // SYNC: ring-read
      if (written_ + skip + length + 64 - seen_ > capacity_) return nullptr;
    }
    if (skip) [[unlikely]] {
      clear(0, number_ + 1);
      at(written_).word.store(record_word(Kind::skip, 0, number_++), std::memory_order_release);  // SYNC: ring-record
      written_ += skip;
    }
    return &at(written_);
  }
  void publish(Record* record, Kind kind, std::size_t payload, std::uint64_t marks = 0) {
    written_ += record_length(payload);
    clear(written_, number_ + 1);
    const std::uint64_t word = record_word(kind, payload, number_++) | marks;
    record->word.store(word, std::memory_order_release);  // SYNC: ring-record
    // What the next records fill, and look at, was read one turn of the ring ago, and is in the reader's cache.
    __builtin_prefetch(&at(written_ + 64), 1);
    __builtin_prefetch(&at(written_ + ahead), 1);
  }

 private:
  Record& at(std::uint64_t position) const {
    return *reinterpret_cast<Record*>(ring_->data + (position & (capacity_ - 1)));
  }
  // pre: the reader does not look at that position yet, and has read what was there.
  void clear(std::uint64_t position, std::uint32_t number) {
    auto& word = at(position).word;
    if (number_of(word.load(std::memory_order_relaxed)) == number) [[unlikely]]
      word.store(number ? 0 : record_word(Kind::none, 0, 1), std::memory_order_relaxed);
  }
  static constexpr std::uint64_t ahead = 512;  // bytes
  Ring* ring_ = nullptr;
  std::uint64_t capacity_ = 0, written_ = 0, seen_ = 0;
  std::uint32_t number_ = 1;  // of the next record
};

class FastboxReader {
 public:
  FastboxReader() = default;
  FastboxReader(Ring* ring, std::uint64_t capacity)
      : ring_(ring), capacity_(capacity), longest_(largest_payload(capacity)) {}
  explicit operator bool() const { return ring_ != nullptr; }

  // The next record, with its word; nullptr when there is none.
  const Record* look(std::uint64_t& word) {
    const Record* record = at(read_);
    word = record->word.load(std::memory_order_acquire);  // SYNC: ring-record
    if (number_of(word) != number_) return nullptr;
    if (bytes_of(word) > longest_) [[unlikely]]
      return nullptr;
    if (kind_of(word) == Kind::skip) [[unlikely]] {
      read_ += capacity_ - (read_ & (capacity_ - 1));
      ++number_;
      return look(word);
    }
    return record;
  }
  // What lies there has the number of the next record, but not its length: look() gives nothing any more.
  bool damaged() const {
    const std::uint64_t word = at(read_)->word.load(std::memory_order_relaxed);
    return number_of(word) == number_ && bytes_of(word) > longest_;
  }
  // While look() gives nothing.
  void ask_ahead() const {
    for (std::uint64_t behind = 64; behind <= ahead_; behind += 64) __builtin_prefetch(at(read_ + behind));
  }
  // What look() gave has been read.
  void take(std::uint64_t word) {
    const std::uint64_t length = record_length(bytes_of(word));
    read_ += length;
    ++number_;
    ahead_ = word & ahead_of_next ? std::min(length - 64, most_ahead) : 0;
    if (read_ - published_ < capacity_ / 4) return;
    published_ = read_;
    ring_->read.store(read_, std::memory_order_release);  // SYNC: ring-read
  }
  void report_sample(std::uint32_t ticks) {
    const std::uint64_t number = (ring_->sample.load(std::memory_order_relaxed) >> 32) + 1;
    ring_->sample.store(number << 32 | ticks, std::memory_order_relaxed);
  }

 private:
  const Record* at(std::uint64_t position) const {
    return reinterpret_cast<const Record*>(ring_->data + (position & (capacity_ - 1)));
  }
  Ring* ring_ = nullptr;
  std::uint64_t capacity_ = 0, read_ = 0, published_ = 0;
  std::uint64_t longest_ = 0;
  std::uint64_t ahead_ = 0;   // bytes behind the line that is looked at
  std::uint32_t number_ = 1;  // of the next record
};

}  // namespace nearfield::messages
