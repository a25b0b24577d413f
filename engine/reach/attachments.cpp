#include "engine/reach/attachments.hpp"

#include <algorithm>

namespace nearfield::reach {

Attachments::Attachments(Peers& peers, Peer* peer, std::uint32_t by) {
  entries_.reserve(2);
  for (std::size_t w = 0; w < mapper_count; ++w) {
    if (!mappers()[w]->standing || !(by >> w & 1)) continue;
    const Region region = Region::of(RemoteBuffer(w, 0, 0));
    entries_.push_back({region, peer ? peers.attach(*peer, region).at : nullptr});
  }
}

bool Attachments::outdated(const RemoteBuffer& place) const {
  return std::ranges::any_of(entries_, [&](const Entry& entry) {
    return entry.region.mapper() == place.mapper() && entry.region.generation() > place.generation();
  });
}

void Attachments::add(Entry entry) {
  std::erase_if(entries_, [&](const Entry& known) {
    return known.region.mapper() == entry.region.mapper() && known.region.generation() < entry.region.generation();
  });
  const auto piece = [&](const Entry& known) { return known.region.memory == entry.region.memory; };
  if (std::size_t(std::ranges::count_if(entries_, piece)) >= most_pieces)
    entries_.erase(std::ranges::find_if(entries_, piece));
  entries_.push_back(std::move(entry));
}

const Attachments::Entry* Attachments::need(Peers& peers, Peer& peer, const RemoteBuffer& place) noexcept try {
  const Region region = Region::of(place);
  reserve();
  Attached attached;
  {
    const std::lock_guard lock(peers.mutex);
    attached = peers.attach(peer, region);
    if (attached.state == Attached::State::not_yet && peers.collect()) attached = peers.attach(peer, region);
  }
  if (attached.state != Attached::State::yes) return nullptr;
  add({region, attached.at, std::move(attached.keep)});
  return &entries_.back();
} catch (const std::bad_alloc&) {
  return nullptr;
}

}  // namespace nearfield::reach
