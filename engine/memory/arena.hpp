// Allocation of offsets inside one's own segment: best fit over free ranges, neighbours merged on free.
//
// All bookkeeping is private to the owner and lies outside the segment, so nothing that a peer writes can break it,
// and a peer that dies leaves no lock behind. Space is reserved (Segment::reserve) before it is handed out, but for
// memory of the program (allocate_untouched), whose pages come at the first touch, as those of malloc do.
//
// A component with a wish (placement.hpp) has pages of its own, a zone. An allocation with a wish of its own, or whose
// memory returns to the kernel when it is freed, has pages of its own, a lot. All others share the first zone.
//
// Memory that the program has freed is kept, up to a bound, in two zones for its next allocations: small pieces would
// break up large ones. The last few pieces keep their bookkeeping for allocations of the same length before they join
// their zone.
//
//   begin .. top        ranges of zones, lots, and holes. A hole has no memory: alignment has left it out, or a lot was
//                       there. A zone that grows and a new lot take a hole that fits
//   top .. end          nothing is reserved
#pragma once
#include <unistd.h>

#include <array>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "engine/memory/placer.hpp"
#include "engine/memory/segment.hpp"

namespace nearfield::memory {

class Arena {
 public:
  // Serves [begin, end of the segment). The segment must outlive the arena, and so must the placer; without one nothing
  // is placed.
  Arena(Segment& segment, std::size_t begin, Placer* placer = nullptr);

  // Returns the offset of `bytes` bytes (rounded up to 64), a multiple of `align` (a power of two). Content is
  // unspecified. They lie on the nodes of `wish`, or else of the component's wish. An Error: there is no memory, or a
  // forced wish cannot be met.
  Result<std::size_t> allocate(std::size_t bytes, std::size_t align, Component component = Component::control,
                               const Wish* wish = nullptr);
  // The same, as a lot: its memory returns to the kernel when it is freed.
  Result<std::size_t> allocate_apart(std::size_t bytes, std::size_t align, Component component);
  Result<std::size_t> allocate_zeroed(std::size_t bytes, std::size_t align, Component component = Component::control);
  // Whole pages for the program, at a multiple of `align`. New ones have no memory until they are touched; if there is
  // none then, the kernel kills the process, as with memory of malloc. `zero`: they read as zero. Memory that is placed
  // by a wish is reserved at once.
  Result<std::size_t> allocate_untouched(std::size_t bytes, std::size_t align, Component component, const Wish* wish,
                                         bool zero);
  void free(std::size_t offset);

  std::size_t in_use() const;  // bytes handed out
  // Bytes handed out of one component: now, and at most so far.
  struct Held {
    std::size_t now = 0, most = 0;
  };
  Held held(Component component) const;
  std::size_t reserved() const;  // bytes up to the top, with holes and untouched memory
  // Length of the allocation that begins at `offset`, 0 when there is none.
  std::size_t length(std::size_t offset) const;

 private:
  struct Zone {
    std::map<std::size_t, std::size_t> free;                       // offset -> length, below top_, all reserved
    std::set<std::pair<std::size_t, std::size_t>> free_by_length;  // (length, offset)
  };
  static constexpr std::size_t kept_small = component_count + 1, kept_large = component_count + 2;
  static constexpr std::size_t lot = component_count + 3;  // in place of a zone's number
  struct Used {
    std::size_t length;
    std::size_t zone;  // 0, a component's + 1, a kept one, or `lot`
    Component component;
    bool placed, own;  // placed: by a wish; own: that is the component's, not the allocation's
  };
  using Ranges = std::map<std::size_t, std::size_t>;
  using Pieces = std::map<std::size_t, Used>;  // by offset

  // A forked child has its parent's arena, but may neither allocate nor free in the parent's segment.
  bool inherited() const { return getpid() != owner_; }
  void add_free(Zone& zone, std::size_t offset, std::size_t bytes);
  void remove_free(Zone& zone, Ranges::iterator range);
  std::optional<std::size_t> take_free(Zone& zone, std::size_t bytes, std::size_t align);
  Error full() const;
  Result<void> check_length(std::size_t bytes) const;
  Result<void> grow(std::size_t zone, std::size_t bytes, std::size_t align);
  Result<void> reserve(Component component, const Wish& wish, bool own, std::size_t offset, std::size_t bytes);
  Result<std::size_t> allocate_lot(std::size_t bytes, std::size_t align, Component component, const Wish* wish,
                                   bool own);
  Ranges::iterator find_place(std::size_t bytes, std::size_t align, std::size_t& at);
  void occupy(Ranges::iterator hole, std::size_t begin, std::size_t end);
  void free_untouched(Pieces::node_type piece);
  Pieces::node_type take_recent(std::size_t bytes, std::size_t align, std::size_t zone);
  void settle_recent();
  void free_lot(std::size_t offset, std::size_t bytes);

  Segment& segment_;
  Placer* placer_;
  mutable std::mutex mutex_;
  std::array<Zone, lot> zones_;
  Ranges holes_;  // offset -> length, below top_, none reserved
  Pieces used_;
  std::array<Pieces::node_type, 4> recent_;  // freed last; empty where there is none
  std::size_t next_recent_ = 0;
  std::size_t begin_, top_;  // beyond top_ nothing is reserved
  std::size_t in_use_ = 0, kept_ = 0;
  const pid_t owner_ = getpid();
  std::array<Held, component_count> held_{};

  void note(Component component, std::size_t bytes);
};

}  // namespace nearfield::memory
