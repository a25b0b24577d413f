// Flattened datatypes: offsets of an element's bytes, and copies between two layouts.
//
// A layout is a list of runs in the order of the type signature. A run is `count` blocks of `bytes` bytes, `stride`
// bytes apart, so a vector is one run and a three-dimensional subarray one run per plane. Everything is plain data in
// one array: it may lie in a segment, where peers read it as it is.
//
// Data of a layout is addressed by its position in packed order: byte 0 is the first byte of the first element.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/copying/copy.hpp"

namespace nearfield::layout {

struct Run {
  std::int64_t offset;   // bytes from the element's address to the first block
  std::uint64_t bytes;   // of one block
  std::uint64_t count;   // blocks
  std::int64_t stride;   // bytes from block to block
  std::uint64_t packed;  // bytes of the element before this run
};

// `runs == nullptr`: dense, elements without gaps. Then size and extent do not matter.
struct View {
  const Run* runs = nullptr;
  std::uint64_t run_count = 0;
  std::uint64_t size = 1;   // bytes of data in an element
  std::int64_t extent = 1;  // bytes from element to element
  std::int64_t low = 0;     // the lowest byte that an element touches, relative to its address
  std::int64_t high = 1;    // one past the highest
  bool dense() const { return runs == nullptr; }
};

// A list of runs; a short one allocates nothing.
class Runs {
 public:
  Runs() = default;
  Runs(const Runs& other) { *this = other; }
  Runs(Runs&& other) noexcept { *this = std::move(other); }
  Runs& operator=(const Runs& other) {
    more_ = other.more_;
    few_ = other.few_;
    size_ = other.size_;
    return *this;
  }
  Runs& operator=(Runs&& other) noexcept {
    more_ = std::move(other.more_);
    few_ = other.few_;
    size_ = std::exchange(other.size_, 0);
    return *this;
  }
  void push_back(const Run& run) {
    if (more_.empty() && size_ < few_.size()) {
      few_[size_++] = run;
      return;
    }
    if (more_.empty()) more_.assign(few_.begin(), few_.end());
    more_.push_back(run);
    ++size_;
  }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Run* data() { return more_.empty() ? few_.data() : more_.data(); }
  const Run* begin() const { return more_.empty() ? few_.data() : more_.data(); }
  const Run* end() const { return begin() + size_; }
  Run* begin() { return data(); }
  Run* end() { return data() + size_; }
  Run& back() { return end()[-1]; }
  const Run& operator[](std::size_t k) const { return begin()[k]; }
  Run& operator[](std::size_t k) { return begin()[k]; }

 private:
  std::size_t size_ = 0;
  std::array<Run, 3> few_;
  std::vector<Run> more_;  // all of them, if they do not fit few_
};

// Builds runs; merges consecutive bytes and regular strides, however they were added. It gives up beyond `most_runs`,
// where a packed copy is cheaper than the list.
class Builder {
 public:
  static constexpr std::size_t most_runs = std::size_t{1} << 22;

  void add(std::int64_t offset, std::uint64_t bytes, std::uint64_t count = 1, std::int64_t stride = 0);
  // Adds what `other` holds, `count` times, `stride` bytes apart, beginning at `offset`.
  void add(const Builder& other, std::int64_t offset, std::uint64_t count, std::int64_t stride);
  std::uint64_t size() const { return size_; }
  std::size_t run_count() const { return runs_.size(); }
  bool too_long() const { return too_long_; }  // if true, nothing else of it is valid
  // Fills in positions. The view refers to the builder's own array: it ends with the builder, and when that is moved.
  View view(std::int64_t extent);

 private:
  Runs runs_;
  std::uint64_t size_ = 0;
  bool too_long_ = false;
};

// Memory from one address to another.
struct Range {
  std::byte *begin = nullptr, *end = nullptr;
};

// A user's buffer: `bytes` bytes of packed data, laid out from `address` on.
struct Data {
  std::byte* address = nullptr;
  std::uint64_t bytes = 0;
  View view{};

  bool dense() const { return view.dense(); }
  // Start of the memory that it spans.
  std::byte* begin() const;
  std::uint64_t span() const;  // bytes
  // Returns the memory that bytes [first, first + count) span, or a little more. pre: count > 0.
  Range range(std::uint64_t first, std::uint64_t count) const;
};

// Iterates over contiguous pieces, from a packed position on.
class Cursor {
 public:
  Cursor(const Data& data, std::uint64_t position);
  std::byte* at() const { return at_; }
  std::uint64_t left() const { return left_; }  // bytes of this piece; 0: the end of the data
  void advance(std::uint64_t bytes);            // at most left()

 private:
  void find(std::uint64_t position);
  void settle();
  const Data& data_;
  std::uint64_t remaining_;  // bytes from here to the end of the data
  std::byte *at_ = nullptr, *element_ = nullptr, *block_ = nullptr;
  std::uint64_t left_ = 0, run_ = 0, nth_ = 0;
};

void gather_runs(void* to, const Data& from, std::uint64_t position, std::uint64_t bytes) noexcept;
void scatter_runs(const Data& to, std::uint64_t position, const void* from, std::uint64_t bytes) noexcept;

// Copies bytes [position, position + bytes) of the data to, or from, contiguous memory.
inline void gather(void* to, const Data& from, std::uint64_t position, std::uint64_t bytes) noexcept {
  if (from.dense()) copying::copy(to, from.address + position, bytes);
  else gather_runs(to, from, position, bytes);
}
inline void scatter(const Data& to, std::uint64_t position, const void* from, std::uint64_t bytes) noexcept {
  if (to.dense()) copying::copy(to.address + position, from, bytes);
  else scatter_runs(to, position, from, bytes);
}
// Copies these bytes from one layout to the other in one pass.
void copy(const Data& to, const Data& from, std::uint64_t position, std::uint64_t bytes) noexcept;

}  // namespace nearfield::layout
