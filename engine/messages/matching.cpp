#include "engine/messages/matching.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace nearfield::messages {
namespace {

constexpr std::size_t fewest_bins = 64, most_kept = 4096;

}  // namespace

std::size_t Bins::hash(const Envelope& key) {
  std::uint64_t bits = key.context ^ (std::uint64_t(std::uint32_t(key.source)) << 32 | std::uint32_t(key.tag));
  bits *= 0x9e3779b97f4a7c15u;
  bits ^= bits >> 29;
  bits *= 0xbf58476d1ce4e5b9u;
  return bits >> 32;
}

// pre: there are bins.
KeyEntry* Bins::oldest(const Envelope& key) const {
  KeyEntry* place = bins_[hash(key) & (bins_.size() - 1)];
  while (place && place->key != key) place = place->below;
  return place;
}

void Bins::push(KeyEntry& place) {
  if (KeyEntry* const first = oldest(place.key)) {
    place.at = nullptr;
    place.next = first;
    place.previous = std::exchange(first->previous, &place);
    place.previous->next = &place;
    return;
  }
  if (++keys_ > bins_.size()) grow();  // without memory, bins get longer
  place.next = place.previous = &place;
  put(place);
}

void Bins::put(KeyEntry& oldest) {
  KeyEntry*& bin = bins_[hash(oldest.key) & (bins_.size() - 1)];
  oldest.below = bin;
  oldest.at = &bin;
  if (bin) bin->at = &oldest.below;
  bin = &oldest;
}

void Bins::remove(KeyEntry& place) {
  const bool alone = place.next == &place;
  place.previous->next = place.next;
  place.next->previous = place.previous;
  if (!place.at) return;
  KeyEntry* const heir = alone ? place.below : place.next;
  if (alone) --keys_;
  else if ((heir->below = place.below)) heir->below->at = &heir->below;
  if (heir) heir->at = place.at;
  *place.at = heir;
}

bool Bins::grow() noexcept try {
  std::vector<KeyEntry*> old(std::max(fewest_bins, 2 * bins_.size()));
  old.swap(bins_);
  for (KeyEntry* oldest : old)
    while (oldest) put(*std::exchange(oldest, oldest->below));
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void Bins::shrink() {
  if (bins_.size() > most_kept) std::vector<KeyEntry*>().swap(bins_);
}

}  // namespace nearfield::messages
