// The fastbox of an ordered pair: a ring of records, one writer and one reader.
//
//   writer                                            reader
//   is there room? (loads `read` only when the value  word = record.word (acquire); another number: no record yet
//     of its last load no longer suffices)            reads the payload
//   writes the payload                                position += length; stores it in `read` (release) once for
//   if the word behind the record happens to have       each quarter of the ring
//     the next number: stores another word there
//   record.word = number | kind | bytes (release)
//
// Where the reader looks next there are bytes of the previous turn of the ring, a header or payload. The reader ignores
// them unless they hold the number of the record that it awaits. The writer removes such a number before it publishes
// the record in front of them, and stores nothing there from then until the header itself. The check is cheap, since
// the writer owns that line. Clearing the word every time would need a store, which takes the line from the reader.
//
// A record that does not fit before the end of the ring goes to its beginning, behind a `skip`.
#pragma once
#include <algorithm>

#include "engine/messages/blocks.hpp"

namespace nearfield::messages {

// Returns the bytes of a ring and its words.
constexpr std::size_t bytes_of_fastbox(std::uint64_t ring_bytes) { return sizeof(Ring) + ring_bytes; }
constexpr std::size_t largest_payload(std::uint64_t capacity) { return capacity / 4 - record_header; }

class FastboxWriter {
 public:
  FastboxWriter() = default;
  // pre: the ring has `capacity` bytes of data, a power of two, and the reader does not know it yet.
  FastboxWriter(Ring* ring, std::uint64_t capacity) : ring_(ring), capacity_(capacity) {
    ring->read.store(0, std::memory_order_relaxed);
    ring->sample.store(0, std::memory_order_relaxed);
    clear(0, number_);
  }
  explicit operator bool() const { return ring_ != nullptr; }
  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t sample() const { return ring_->sample.load(std::memory_order_relaxed); }

  // Returns a record that the caller fills with `payload` bytes and publishes; nullptr: there is no room now.
  Record* reserve(std::size_t payload) {
    const std::uint64_t length = record_length(payload), offset = written_ & (capacity_ - 1);
    const std::uint64_t skip = offset + length > capacity_ ? capacity_ - offset : 0;
    // One line more than the record, since publish() may change the word behind it.
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
    // The reader has read the lines of the next records one turn of the ring ago, so they are in its cache.
    __builtin_prefetch(&at(written_ + 64), 1);
    __builtin_prefetch(&at(written_ + ahead), 1);
  }

 private:
  Record& at(std::uint64_t position) const {
    return *reinterpret_cast<Record*>(ring_->data + (position & (capacity_ - 1)));
  }
  // Removes that number from the word there. pre: the reader does not look there yet, and has read what was there.
  void clear(std::uint64_t position, std::uint32_t number) {
    auto& word = at(position).word;
    if (number_of(word.load(std::memory_order_relaxed)) == number) [[unlikely]]
      word.store(number ? 0 : record_word(Kind::none, 0, 1), std::memory_order_relaxed);
  }
  static constexpr std::uint64_t ahead = 512;  // bytes from the next record to the second prefetched line
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

  // Returns the next record, and its word; nullptr: it is not there yet.
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
  // Returns whether the next record has its number but an impossible length, so that look() never returns it.
  bool damaged() const {
    const std::uint64_t word = at(read_)->word.load(std::memory_order_relaxed);
    return number_of(word) == number_ && bytes_of(word) > longest_;
  }
  // Prefetches lines of the next record, while look() returns nothing.
  void ask_ahead() const {
    for (std::uint64_t behind = 64; behind <= ahead_; behind += 64) __builtin_prefetch(at(read_ + behind));
  }
  // Called once the record of look() has been read.
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
  std::uint64_t ahead_ = 0;   // bytes to prefetch behind the polled line
  std::uint32_t number_ = 1;  // of the next record
};

}  // namespace nearfield::messages
