#include "engine/memory/arena.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace nearfield::memory {
namespace {

constexpr std::size_t grain = 64;
constexpr std::size_t step = 64 << 10;       // the top moves by this much
constexpr std::size_t kept_free = 16 << 20;  // free memory at the top beyond this returns to the kernel

std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

}  // namespace

Arena::Arena(Segment& segment, std::size_t begin) : segment_(segment), begin_(round_up(begin, grain)), top_(begin_) {}

void Arena::add_free(std::size_t offset, std::size_t bytes) {
  if (!bytes) return;
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && offset + bytes == next->first) {
    bytes += next->second;
    auto taken = next++;
    remove_free(taken);
  }
  next = free_.lower_bound(offset);
  if (next != free_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      remove_free(before);
    }
  }
  // Without memory for the bookkeeping the range is lost, and nothing else.
  try {
    const auto added = free_.emplace(offset, bytes).first;
    try {
      free_by_length_.emplace(bytes, offset);
    } catch (const std::bad_alloc&) {
      free_.erase(added);
    }
  } catch (const std::bad_alloc&) {
  }
}

void Arena::remove_free(std::map<std::size_t, std::size_t>::iterator range) {
  free_by_length_.erase({range->second, range->first});
  free_.erase(range);
}

Result<std::size_t> Arena::allocate(std::size_t bytes, std::size_t align) {
  if (bytes > segment_.size())
    return Error{"an allocation of " + std::to_string(bytes >> 20) + " MiB exceeds the segment"};
  bytes = round_up(std::max<std::size_t>(bytes, 1), grain);
  align = std::max(align, grain);
  const std::lock_guard lock(mutex_);
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (auto it = free_by_length_.lower_bound({bytes, 0}); it != free_by_length_.end(); ++it) {
      const auto [length, offset] = *it;
      const std::size_t at = round_up(offset, align);
      if (at + bytes > offset + length) continue;
      remove_free(free_.find(offset));
      add_free(offset, at - offset);
      add_free(at + bytes, offset + length - at - bytes);
      try {
        used_[at] = bytes;
      } catch (const std::bad_alloc&) {
        add_free(at, bytes);
        return Error{"out of memory"};
      }
      in_use_ += bytes;
      return at;
    }
    // Nothing fits: move the top, so that a range ending there does.
    const std::size_t needed = round_up(top_, align) + bytes;
    const std::size_t new_top = std::min(round_up(needed, step), segment_.size());
    if (new_top < needed) return Error{"the segment of " + std::to_string(segment_.size() >> 20) + " MiB is full"};
    if (auto reserved = segment_.reserve(top_, new_top - top_); !reserved) return reserved.error();
    add_free(top_, new_top - top_);
    top_ = new_top;
  }
  return Error{"no room in the segment"};
}

Result<std::size_t> Arena::allocate_zeroed(std::size_t bytes, std::size_t align) {
  auto offset = allocate(bytes, align);
  if (offset) std::memset(segment_.base() + *offset, 0, bytes);
  return offset;
}

void Arena::free(std::size_t offset) {
  const std::lock_guard lock(mutex_);
  const auto it = used_.find(offset);
  if (it == used_.end()) return;
  in_use_ -= it->second;
  add_free(it->first, it->second);
  used_.erase(it);
  if (free_.empty()) return;
  const auto last = std::prev(free_.end());
  if (last->first + last->second != top_ || last->second <= kept_free) return;
  const std::size_t new_top = round_up(last->first, step);
  if (new_top >= top_) return;
  const std::size_t start = last->first;
  segment_.give_back(new_top, top_ - new_top);
  remove_free(last);
  add_free(start, new_top - start);
  top_ = new_top;
}

std::size_t Arena::in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

std::size_t Arena::reserved() const {
  const std::lock_guard lock(mutex_);
  return top_;
}

std::size_t Arena::length(std::size_t offset) const {
  const std::lock_guard lock(mutex_);
  const auto it = used_.find(offset);
  return it == used_.end() ? 0 : it->second;
}

}  // namespace nearfield::memory
