// Regions of one peer that are attached: those that a team has agreed on, or that a messenger has needed. If the mapper
// attaches piece by piece, only the last few pieces are kept, so members that add the same regions in the same order
// find the same ones.
#pragma once
#include <vector>

#include "engine/reach/peers.hpp"

namespace nearfield::reach {

class Attachments {
 public:
  struct Entry {
    Region region;
    std::byte* at = nullptr;  // address of the region's begin here; nullptr: refused, or our own
    std::shared_ptr<const void> keep = {};
    bool refused = false;
    std::byte* resolve(const RemoteBuffer& place) const { return at + (place.offset() - region.begin); }
  };

  // `peer`: nullptr for ourselves. Attaches the standing regions of the mappers in the mask `by`.
  Attachments(Peers& peers, Peer* peer, std::uint32_t by);

  const Entry* find(const RemoteBuffer& place) const {
    for (const Entry& entry : entries_)
      if (entry.region.holds(place)) return &entry;
    return nullptr;
  }
  // Returns whether a later generation of the same memory is attached.
  bool outdated(const RemoteBuffer& place) const;
  // Makes room for another entry. Throws std::bad_alloc.
  void reserve() { entries_.reserve(entries_.size() + 1); }
  // Replaces earlier generations of the same memory, or the oldest piece. Throws only without room.
  void add(Entry entry);
  // Attaches the region of `place` if that needs no other process's help; nullptr otherwise.
  const Entry* need(Peers& peers, Peer& peer, const RemoteBuffer& place) noexcept;

 private:
  static constexpr std::size_t most_pieces = 16;
  std::vector<Entry> entries_;
};

}  // namespace nearfield::reach
