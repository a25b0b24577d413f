// What is attached of one peer, as far as a team has agreed on it or a messenger has needed it. Of mappers that attach
// piece by piece the last few pieces count: all who add the same regions in the same order find the same ones.
#pragma once
#include <vector>

#include "engine/reach/peers.hpp"

namespace nearfield::reach {

class Attachments {
 public:
  struct Entry {
    Region region;
    std::byte* at = nullptr;  // where the region begins here; nullptr: refused, or our own
    std::shared_ptr<const void> keep = {};
    bool refused = false;
    std::byte* resolve(const RemoteBuffer& place) const { return at + (place.offset() - region.begin); }
  };

  // Of `peer`, nullptr: our own. What stands is there from the beginning, of the mappers in `by`.
  Attachments(Peers& peers, Peer* peer, std::uint32_t by);

  const Entry* find(const RemoteBuffer& place) const {
    for (const Entry& entry : entries_)
      if (entry.region.holds(place)) return &entry;
    return nullptr;
  }
  // Whether a later generation of the same memory is there.
  bool outdated(const RemoteBuffer& place) const;
  // Room for another one. Throws std::bad_alloc.
  void reserve() { entries_.reserve(entries_.size() + 1); }
  // In the place of earlier generations, or of the oldest piece. Throws only where there is no room.
  void add(Entry entry);
  // What is needed now, if it can be had without anybody else's help; nullptr: it cannot.
  const Entry* need(Peers& peers, Peer& peer, const RemoteBuffer& place) noexcept;

 private:
  static constexpr std::size_t most_pieces = 16;
  std::vector<Entry> entries_;
};

}  // namespace nearfield::reach
