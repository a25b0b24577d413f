#include "engine/memory/arena.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace nearfield::memory {
namespace {

constexpr std::size_t grain = 64, page = 4096;
constexpr std::size_t step = 64 << 10;       // the top moves by this much
constexpr std::size_t kept_free = 16 << 20;  // free memory at the top beyond this returns to the kernel
// Freed memory of the program that is kept in all, as by the heap; and the longest piece that is cleared when it is
// used again: clearing a page takes a quarter of the time of a new one, but touches all pages of the piece.
constexpr std::size_t most_kept = 256 << 20, most_cleared = 1 << 20;

std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

}  // namespace

Arena::Arena(Segment& segment, std::size_t begin, Placer* placer)
    : segment_(segment), placer_(placer), begin_(round_up(begin, grain)), top_(begin_) {}

void Arena::add_free(Zone& zone, std::size_t offset, std::size_t bytes) {
  if (!bytes) return;
  auto next = zone.free.lower_bound(offset);
  if (next != zone.free.end() && offset + bytes == next->first) {
    bytes += next->second;
    auto taken = next++;
    remove_free(zone, taken);
  }
  next = zone.free.lower_bound(offset);
  if (next != zone.free.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      remove_free(zone, before);
    }
  }
  // Without memory for the bookkeeping only this range is lost.
  try {
    const auto added = zone.free.emplace(offset, bytes).first;
    try {
      zone.free_by_length.emplace(bytes, offset);
    } catch (const std::bad_alloc&) {
      zone.free.erase(added);
    }
  } catch (const std::bad_alloc&) {
  }
}

void Arena::remove_free(Zone& zone, Ranges::iterator range) {
  zone.free_by_length.erase({range->second, range->first});
  zone.free.erase(range);
}

// Takes `bytes` bytes at a multiple of `align` out of the shortest free range that holds them.
std::optional<std::size_t> Arena::take_free(Zone& zone, std::size_t bytes, std::size_t align) {
  for (auto it = zone.free_by_length.lower_bound({bytes, 0}); it != zone.free_by_length.end(); ++it) {
    const auto [length, offset] = *it;
    const std::size_t at = round_up(offset, align);
    if (at + bytes > offset + length) continue;
    remove_free(zone, zone.free.find(offset));
    add_free(zone, offset, at - offset);
    add_free(zone, at + bytes, offset + length - at - bytes);
    return at;
  }
  return std::nullopt;
}

Error Arena::full() const { return Error{"the segment of " + std::to_string(segment_.size() >> 20) + " MiB is full"}; }
Result<void> Arena::check_length(std::size_t bytes) const {
  if (bytes <= segment_.size()) return {};
  return Error{"an allocation of " + std::to_string(bytes >> 20) + " MiB exceeds the segment"};
}

// Finds a hole that holds `bytes` bytes at a multiple of `align`, and their offset `at`; holes_.end(): behind the top.
Arena::Ranges::iterator Arena::find_place(std::size_t bytes, std::size_t align, std::size_t& at) {
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole)
    if (at = round_up(hole->first, align); at + bytes <= hole->first + hole->second) return hole;
  at = round_up(top_, align);
  return holes_.end();
}

// Takes [begin, end) out of the hole, or puts it below the top. Without memory for the bookkeeping only the rest of the
// hole is lost.
void Arena::occupy(Ranges::iterator hole, std::size_t begin, std::size_t end) {
  auto leave = [&](std::size_t from, std::size_t to) {
    if (from < to) try {
        holes_.emplace(from, to - from);
      } catch (const std::bad_alloc&) {
      }
  };
  if (hole == holes_.end()) {
    leave(top_, begin);
    top_ = end;
    return;
  }
  const auto [first, length] = *hole;
  leave(end, first + length);
  if (begin > first) hole->second = begin - first;
  else holes_.erase(hole);
}

// Adds at least `bytes` free bytes at a multiple of `align` to the zone.
Result<void> Arena::grow(std::size_t z, std::size_t bytes, std::size_t align) {
  std::size_t begin;
  const auto hole = find_place(bytes, std::max(align, page), begin);
  const std::size_t limit = hole == holes_.end() ? segment_.size() : hole->first + hole->second;
  const std::size_t end = std::min(round_up(begin + bytes, step), limit);
  if (end < begin + bytes) return full();
  const auto component = Component(z - 1);
  auto reserved = z == 0 ? segment_.reserve(begin, end - begin)
                         : reserve(component, *placer_->wish(component), true, begin, end - begin);
  if (!reserved) return reserved;
  occupy(hole, begin, end);
  add_free(zones_[z], begin, end - begin);
  return {};
}

// Reserves whole pages on the nodes of the wish.
Result<void> Arena::reserve(Component component, const Wish& wish, bool own, std::size_t offset, std::size_t bytes) {
  std::byte* const at = segment_.base() + offset;
  const Placer::Asked asked = placer_->ask(component, wish, own, at, bytes);
  auto done = segment_.reserve(offset, bytes);
  if (done) done = placer_->settle(component, wish, own, asked, at, bytes);
  if (!done) {
    segment_.give_back(offset, bytes);
    placer_->give_back(component, own, at, bytes);
  }
  return done;
}

Result<std::size_t> Arena::allocate(std::size_t bytes, std::size_t align, Component component, const Wish* wish) {
  if (const auto fits = check_length(bytes); !fits) return fits.error();
  bytes = round_up(std::max<std::size_t>(bytes, 1), grain);
  align = std::max(align, grain);
  const std::lock_guard lock(mutex_);
  if (wish && placer_) return allocate_lot(bytes, align, component, wish, false);
  const std::size_t z = placer_ && placer_->wish(component) ? std::size_t(component) + 1 : 0;
  Zone& zone = zones_[z];
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (const auto at = take_free(zone, bytes, align)) {
      try {
        used_[*at] = {bytes, z, component, z != 0, true};
      } catch (const std::bad_alloc&) {
        add_free(zone, *at, bytes);
        return Error{"out of memory"};
      }
      note(component, bytes);
      return *at;
    }
    if (auto grown = grow(z, bytes, align); !grown) return grown.error();
  }
  return Error{"no room in the segment"};
}

Result<std::size_t> Arena::allocate_lot(std::size_t bytes, std::size_t align, Component component, const Wish* wish,
                                        bool own) {
  bytes = round_up(bytes, page);
  std::size_t at;
  const auto hole = find_place(bytes, std::max(align, page), at);
  if (at + bytes > segment_.size()) return full();
  try {
    used_[at] = {bytes, lot, component, wish != nullptr, own};
  } catch (const std::bad_alloc&) {
    return Error{"out of memory"};
  }
  auto reserved = wish ? reserve(component, *wish, own, at, bytes) : segment_.reserve(at, bytes);
  if (!reserved) {
    segment_.give_back(at, bytes);
    used_.erase(at);
    return reserved.error();
  }
  occupy(hole, at, at + bytes);
  note(component, bytes);
  return at;
}

Result<std::size_t> Arena::allocate_apart(std::size_t bytes, std::size_t align, Component component) {
  if (const auto fits = check_length(bytes); !fits) return fits.error();
  const std::lock_guard lock(mutex_);
  return allocate_lot(std::max<std::size_t>(bytes, 1), align, component, placer_ ? placer_->wish(component) : nullptr,
                      true);
}

Result<std::size_t> Arena::allocate_untouched(std::size_t bytes, std::size_t align, Component component,
                                              const Wish* wish, bool zero) {
  if ((wish && placer_) || (placer_ && placer_->wish(component))) {
    auto offset = allocate(bytes, align, component, wish);
    if (offset && zero) std::memset(segment_.base() + *offset, 0, bytes);
    return offset;
  }
  if (const auto fits = check_length(bytes); !fits) return fits.error();
  if (inherited()) return Error{"the segment belongs to the process that forked this one"};
  bytes = round_up(std::max<std::size_t>(bytes, 1), page);
  align = std::max(align, page);
  const std::size_t z = bytes <= most_cleared ? kept_small : kept_large;
  std::size_t at;
  bool cleared = true;
  {
    const std::lock_guard lock(mutex_);
    const bool may_be_used = !zero || z == kept_small;
    Pieces::node_type piece;
    if (may_be_used) piece = take_recent(bytes, align, z);
    std::optional<std::size_t> again;
    auto hole = holes_.end();
    if (piece) {
      again = at = piece.key();
      piece.mapped().component = component;
      used_.insert(std::move(piece));
    } else {
      settle_recent();
      if (may_be_used) again = take_free(zones_[z], bytes, align);
      if (again) at = *again;
      else if (hole = find_place(bytes, align, at); at + bytes > segment_.size()) return full();
      try {
        used_[at] = {bytes, z, component, false, false};
      } catch (const std::bad_alloc&) {
        if (again) add_free(zones_[z], at, bytes);
        return Error{"out of memory"};
      }
    }
    cleared = !again;
    if (again) kept_ -= bytes;
    else occupy(hole, at, at + bytes);
    note(component, bytes);
  }
  if (zero && !cleared) std::memset(segment_.base() + at, 0, bytes);
  return at;
}

// Memory of windows must read as zero, so it goes back to the kernel where clearing would take longer.
void Arena::free_untouched(Pieces::node_type piece) {
  const Used& used = piece.mapped();
  const bool keep = (used.component != Component::windows || used.zone == kept_small) &&
                    kept_ + used.length <= std::min(most_kept, segment_.size() / 16);
  if (!keep) return free_lot(piece.key(), used.length);
  kept_ += used.length;
  Pieces::node_type& recent = recent_[next_recent_++ % recent_.size()];
  if (recent) add_free(zones_[recent.mapped().zone], recent.key(), recent.mapped().length);
  recent = std::move(piece);
}

// Returns a piece of exactly that length, or an empty node.
Arena::Pieces::node_type Arena::take_recent(std::size_t bytes, std::size_t align, std::size_t zone) {
  for (std::size_t k = 0; k < recent_.size(); ++k) {  // the last one first
    Pieces::node_type& recent = recent_[(next_recent_ - 1 - k) % recent_.size()];
    if (recent && recent.mapped().length == bytes && recent.mapped().zone == zone && recent.key() % align == 0)
      return std::move(recent);
  }
  return {};
}

// Merges the recent pieces into their zones.
void Arena::settle_recent() {
  for (Pieces::node_type& recent : recent_) {
    if (recent) add_free(zones_[recent.mapped().zone], recent.key(), recent.mapped().length);
    recent = {};
  }
}

// Returns the lot's memory to the kernel.
void Arena::free_lot(std::size_t offset, std::size_t bytes) {
  segment_.give_back(offset, bytes);
  try {
    auto hole = holes_.emplace(offset, bytes).first;
    if (auto next = std::next(hole); next != holes_.end() && next->first == offset + bytes) {
      hole->second += next->second;
      holes_.erase(next);
    }
    if (hole != holes_.begin())
      if (auto before = std::prev(hole); before->first + before->second == hole->first) {
        before->second += hole->second;
        holes_.erase(hole);
        hole = before;
      }
    if (hole->first + hole->second == top_) {
      top_ = hole->first;
      holes_.erase(hole);
    }
  } catch (const std::bad_alloc&) {  // the range is lost
  }
}

Result<std::size_t> Arena::allocate_zeroed(std::size_t bytes, std::size_t align, Component component) {
  auto offset = allocate(bytes, align, component);
  if (offset) std::memset(segment_.base() + *offset, 0, bytes);
  return offset;
}

void Arena::free(std::size_t offset) {
  if (inherited()) return;
  const std::lock_guard lock(mutex_);
  const auto it = used_.find(offset);
  if (it == used_.end()) return;
  Pieces::node_type piece = used_.extract(it);
  const Used& used = piece.mapped();
  in_use_ -= used.length;
  held_[std::size_t(used.component)].now -= used.length;
  if (used.zone == kept_small || used.zone == kept_large) return free_untouched(std::move(piece));
  if (used.zone == lot) {
    if (used.placed) placer_->give_back(used.component, used.own, segment_.base() + offset, used.length);
    return free_lot(offset, used.length);
  }
  Zone& zone = zones_[used.zone];
  add_free(zone, offset, used.length);
  if (zone.free.empty()) return;
  const auto last = std::prev(zone.free.end());
  if (last->first + last->second != top_ || last->second <= kept_free) return;
  const std::size_t new_top = round_up(last->first, step);
  if (new_top >= top_) return;
  const std::size_t start = last->first;
  segment_.give_back(new_top, top_ - new_top);
  if (used.zone) placer_->give_back(used.component, true, segment_.base() + new_top, top_ - new_top);
  remove_free(zone, last);
  add_free(zone, start, new_top - start);
  top_ = new_top;
}

std::size_t Arena::in_use() const {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

// pre: the lock is held.
void Arena::note(Component component, std::size_t bytes) {
  in_use_ += bytes;
  Held& held = held_[std::size_t(component)];
  held.now += bytes;
  held.most = std::max(held.most, held.now);
}

Arena::Held Arena::held(Component component) const {
  const std::lock_guard lock(mutex_);
  return held_[std::size_t(component)];
}

std::size_t Arena::reserved() const {
  const std::lock_guard lock(mutex_);
  return top_;
}

std::size_t Arena::length(std::size_t offset) const {
  const std::lock_guard lock(mutex_);
  const auto it = used_.find(offset);
  return it == used_.end() ? 0 : it->second.length;
}

}  // namespace nearfield::memory
