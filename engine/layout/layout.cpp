#include "engine/layout/layout.hpp"

#include <algorithm>
#include <cstring>

namespace nearfield::layout {

void Builder::add(std::int64_t offset, std::uint64_t bytes, std::uint64_t count, std::int64_t stride) {
  if (bytes == 0 || count == 0) return;
  if (count > 1 && stride == std::int64_t(bytes)) {
    bytes *= count;
    count = 1;
  }
  if (count == 1) stride = 0;
  size_ += bytes * count;
  if (!runs_.empty()) {
    Run& last = runs_.back();
    if (last.count == 1 && count == 1 && offset == last.offset + std::int64_t(last.bytes)) {
      last.bytes += bytes;
      return;
    }
    if (last.bytes == bytes) {
      const std::int64_t step = offset - (last.offset + std::int64_t(last.count - 1) * last.stride);
      // Two blocks define a stride; a run continues as long as it stays the same.
      if ((last.count == 1 || step == last.stride) && (count == 1 || stride == step)) {
        last.stride = step;
        last.count += count;
        return;
      }
    }
  }
  too_long_ = too_long_ || runs_.size() == most_runs;
  if (!too_long_) runs_.push_back({offset, bytes, count, stride, 0});
}

void Builder::add(const Builder& other, std::int64_t offset, std::uint64_t count, std::int64_t stride) {
  too_long_ = too_long_ || other.too_long_;
  if (other.runs_.size() == 1) {
    const Run& run = other.runs_[0];
    if (run.count == 1) {
      add(offset + run.offset, run.bytes, count, stride);
      return;
    }
    if (stride == run.stride * std::int64_t(run.count)) {
      add(offset + run.offset, run.bytes, run.count * count, run.stride);
      return;
    }
  }
  for (std::uint64_t i = 0; i < count && !too_long_; ++i)
    for (const Run& run : other.runs_)
      add(offset + std::int64_t(i) * stride + run.offset, run.bytes, run.count, run.stride);
}

View Builder::view(std::int64_t extent) {
  View view{runs_.data(), runs_.size(), size_, extent, 0, 0};
  std::uint64_t packed = 0;
  bool first = true;
  for (Run& run : runs_) {
    run.packed = packed;
    packed += run.bytes * run.count;
    const std::int64_t last = run.offset + std::int64_t(run.count - 1) * run.stride;
    const std::int64_t low = std::min(run.offset, last), high = std::max(run.offset, last) + std::int64_t(run.bytes);
    view.low = first ? low : std::min(view.low, low);
    view.high = first ? high : std::max(view.high, high);
    first = false;
  }
  // An element without gaps, next to the following one, is dense.
  if (runs_.size() == 1 && runs_[0].count == 1 && runs_[0].offset == 0 && extent == std::int64_t(size_)) return {};
  return view;
}

std::byte* Data::begin() const {
  if (dense() || bytes == 0) return address;
  const std::uint64_t last = (bytes - 1) / view.size;
  const std::int64_t move = std::int64_t(last) * view.extent;
  return address + view.low + std::min<std::int64_t>(0, move);
}

std::uint64_t Data::span() const {
  if (dense() || bytes == 0) return bytes;
  const std::uint64_t last = (bytes - 1) / view.size;
  const std::int64_t move = std::int64_t(last) * view.extent;
  return std::uint64_t(view.high - view.low + (move < 0 ? -move : move));
}

namespace {

const Run* run_at(const View& view, std::uint64_t within) {
  return std::upper_bound(view.runs, view.runs + view.run_count, within,
                          [](std::uint64_t at, const Run& r) { return at < r.packed; }) -
         1;
}

}  // namespace

Range Data::range(std::uint64_t first, std::uint64_t count) const {
  if (dense()) return {address + first, address + first + count};
  const std::uint64_t last = first + count - 1, element = first / view.size;
  std::byte* const at = address + std::int64_t(element) * view.extent;
  if (last / view.size != element) {
    std::byte* const other = address + std::int64_t(last / view.size) * view.extent;
    return {std::min(at, other) + view.low, std::max(at, other) + view.high};
  }
  const std::uint64_t from = first - element * view.size, to = last - element * view.size;
  std::int64_t low = view.high, high = view.low;
  for (const Run* run = run_at(view, from); run != view.runs + view.run_count && run->packed <= to; ++run) {
    const std::uint64_t begin = from > run->packed ? (from - run->packed) / run->bytes : 0,
                        end = std::min((to - run->packed) / run->bytes, run->count - 1);
    const std::int64_t one = run->offset + std::int64_t(begin) * run->stride,
                       another = run->offset + std::int64_t(end) * run->stride;
    low = std::min({low, one, another});
    high = std::max(high, std::max(one, another) + std::int64_t(run->bytes));
  }
  return {at + low, at + high};
}

Cursor::Cursor(const Data& data, std::uint64_t position)
    : data_(data), remaining_(data.bytes > position ? data.bytes - position : 0) {
  if (data.dense()) {
    at_ = data.address + position;
    left_ = remaining_;
  } else if (remaining_) {
    find(position);
  }
}

void Cursor::find(std::uint64_t position) {
  const View& view = data_.view;
  element_ = data_.address + std::int64_t(position / view.size) * view.extent;
  const std::uint64_t within = position % view.size;
  const Run* const run = run_at(view, within);
  run_ = std::uint64_t(run - view.runs);
  nth_ = (within - run->packed) / run->bytes;
  const std::uint64_t into = (within - run->packed) % run->bytes;
  block_ = element_ + run->offset + std::int64_t(nth_) * run->stride;
  at_ = block_ + into;
  left_ = std::min(run->bytes - into, remaining_);
}

void Cursor::settle() {
  const View& view = data_.view;
  if (++nth_ == view.runs[run_].count) {
    nth_ = 0;
    if (++run_ == view.run_count) {
      run_ = 0;
      element_ += view.extent;
    }
    block_ = element_ + view.runs[run_].offset;
  } else {
    block_ += view.runs[run_].stride;
  }
  at_ = block_;
  left_ = std::min(view.runs[run_].bytes, remaining_);
}

void Cursor::advance(std::uint64_t bytes) {
  at_ += bytes;
  left_ -= bytes;
  remaining_ -= bytes;
  if (left_ == 0 && remaining_) settle();
}

namespace {

// `count` blocks of a fixed length: the compiler turns each copy into moves.
template <std::size_t bytes>
void move_blocks(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride,
                 std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i, to += to_stride, from += from_stride) std::memcpy(to, from, bytes);
}

void move_blocks(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride,
                 std::uint64_t bytes, std::uint64_t count) {
  switch (bytes) {
    case 1: return move_blocks<1>(to, to_stride, from, from_stride, count);
    case 2: return move_blocks<2>(to, to_stride, from, from_stride, count);
    case 4: return move_blocks<4>(to, to_stride, from, from_stride, count);
    case 8: return move_blocks<8>(to, to_stride, from, from_stride, count);
    case 16: return move_blocks<16>(to, to_stride, from, from_stride, count);
    case 24: return move_blocks<24>(to, to_stride, from, from_stride, count);
    case 32: return move_blocks<32>(to, to_stride, from, from_stride, count);
    case 64: return move_blocks<64>(to, to_stride, from, from_stride, count);
    case 128: return move_blocks<128>(to, to_stride, from, from_stride, count);
    default:
      for (std::uint64_t i = 0; i < count; ++i, to += to_stride, from += from_stride) copying::copy(to, from, bytes);
  }
}

// Copies between contiguous memory and a layout; `packing`: from the layout. It avoids divisions, since there may be
// many short runs.
template <bool packing>
void move(std::byte* dense, const Data& data, std::uint64_t position, std::uint64_t bytes) {
  auto blocks = [&](std::byte* user, std::int64_t stride, std::uint64_t length, std::uint64_t count) {
    if constexpr (packing) move_blocks(dense, std::int64_t(length), user, stride, length, count);
    else move_blocks(user, stride, dense, std::int64_t(length), length, count);
    dense += length * count;
    bytes -= length * count;
  };
  const View& view = data.view;
  const Run* const end = view.runs + view.run_count;
  std::byte* element = data.address + std::int64_t(position / view.size) * view.extent;
  for (std::uint64_t within = position % view.size; bytes; within = 0, element += view.extent) {
    // Elements of one block each are blocks themselves.
    if (within == 0 && view.run_count == 1 && view.runs->count == 1 && bytes >= view.size) {
      const std::uint64_t whole = bytes / view.size;
      blocks(element + view.runs->offset, view.extent, view.size, whole);
      element += std::int64_t(whole - 1) * view.extent;
      continue;
    }
    const Run* run = view.runs;
    std::uint64_t nth = 0;
    if (within) {
      run = run_at(view, within);
      nth = (within - run->packed) / run->bytes;
      if (const std::uint64_t into = (within - run->packed) % run->bytes) {
        blocks(element + run->offset + std::int64_t(nth) * run->stride + into, 0, std::min(run->bytes - into, bytes),
               1);
        ++nth;
      }
    }
    for (; run != end && bytes; ++run, nth = 0) {
      std::byte* const first = element + run->offset + std::int64_t(nth) * run->stride;
      const std::uint64_t left = run->count - nth;
      const std::uint64_t whole = bytes >= left * run->bytes ? left : bytes / run->bytes;
      blocks(first, run->stride, run->bytes, whole);
      if (whole == left) continue;
      blocks(first + std::int64_t(whole) * run->stride, 0, bytes, bytes != 0);
      break;
    }
  }
}

// One run of many elements of the same layout on both sides.
struct Grid {
  std::int64_t extent;
  std::uint64_t elements;
  std::int64_t stride;
  std::uint64_t blocks;
};

template <std::size_t bytes>
void move_grid(std::byte* to, const std::byte* from, const Grid& grid) {
  for (std::uint64_t e = 0; e < grid.elements; ++e)
    move_blocks<bytes>(to + std::int64_t(e) * grid.extent, grid.stride, from + std::int64_t(e) * grid.extent,
                       grid.stride, grid.blocks);
}

void move_grid(std::byte* to, const std::byte* from, std::uint64_t bytes, const Grid& grid) {
  switch (bytes) {
    case 1: return move_grid<1>(to, from, grid);
    case 2: return move_grid<2>(to, from, grid);
    case 4: return move_grid<4>(to, from, grid);
    case 8: return move_grid<8>(to, from, grid);
    case 16: return move_grid<16>(to, from, grid);
    default:
      for (std::uint64_t e = 0; e < grid.elements; ++e, to += grid.extent, from += grid.extent)
        move_blocks(to, grid.stride, from, grid.stride, bytes, grid.blocks);
  }
}

// Copies `elements` whole elements between two addresses of the same layout.
void copy_elements(std::byte* to, const std::byte* from, const View& view, std::uint64_t elements) {
  // Elements are copied in groups that stay in the cache while all runs visit them.
  constexpr std::uint64_t near = 16 << 10;
  const std::uint64_t each = std::max<std::uint64_t>(1, near / std::uint64_t(view.high - view.low));
  for (std::uint64_t e = 0; e < elements; e += each) {
    const std::int64_t at = std::int64_t(e) * view.extent;
    for (const Run* run = view.runs; run != view.runs + view.run_count; ++run)
      move_grid(to + at + run->offset, from + at + run->offset, run->bytes,
                {view.extent, std::min(each, elements - e), run->stride, run->count});
  }
}

bool same(const View& a, const View& b) {
  return a.runs == b.runs && a.run_count == b.run_count && a.extent == b.extent;
}

}  // namespace

void gather_runs(void* to, const Data& from, std::uint64_t position, std::uint64_t bytes) noexcept {
  move<true>(static_cast<std::byte*>(to), from, position, bytes);
}

void scatter_runs(const Data& to, std::uint64_t position, const void* from, std::uint64_t bytes) noexcept {
  move<false>(static_cast<std::byte*>(const_cast<void*>(from)), to, position, bytes);
}

void copy(const Data& to, const Data& from, std::uint64_t position, std::uint64_t bytes) noexcept {
  if (from.dense()) return scatter(to, position, from.address + position, bytes);
  if (to.dense()) return gather(to.address + position, from, position, bytes);
  if (const View& view = from.view; same(view, to.view) && view.size && position % view.size == 0) {
    const std::uint64_t elements = bytes / view.size;
    const std::int64_t at = std::int64_t(position / view.size) * view.extent;
    copy_elements(to.address + at, from.address + at, view, elements);
    position += elements * view.size;
    bytes -= elements * view.size;
    if (!bytes) return;
  }
  Cursor source(from, position), target(to, position);
  while (bytes) {
    const std::uint64_t n = std::min({source.left(), target.left(), bytes});
    copying::copy(target.at(), source.at(), n);
    source.advance(n);
    target.advance(n);
    bytes -= n;
  }
}

}  // namespace nearfield::layout
