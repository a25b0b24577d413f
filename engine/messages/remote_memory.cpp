#include "engine/messages/remote_memory.hpp"

#include <cstring>

namespace nearfield::messages {

RemoteMemory::RemoteMemory(Mailboxes& mailboxes) : mailboxes_(mailboxes), process_(mailboxes.process()) {
  const auto members = std::size_t(mailboxes.count());
  attached_.reserve(members);
  calls_.reserve(members);
  const std::lock_guard lock(process_.reach().mutex);
  for (int r = 0; r < mailboxes.count(); ++r) {
    reach::Peer* const peer = r == mailboxes.me() ? nullptr : &mailboxes.peer(r);
    calls_.push_back(peer ? reach::Peers::calls(*peer) : nullptr);
    attached_.emplace_back(process_.reach(), peer);
  }
}

// Where the member finds it, if it has what it needs for that.
reach::RemoteBuffer RemoteMemory::place_for(int member, const std::byte* begin, std::size_t bytes) {
  reach::Peers& reach = process_.reach();
  reach::Peer& peer = mailboxes_.peer(member);
  const reach::RemoteBuffer place = reach.place(begin, bytes, peer.common_mappers);
  if (!place.anything() || attached_[std::size_t(member)].passed.holds(place)) return place;
  if (!reach.gives(place)) return {};
  const reach::MemoryMapper& way = *reach::mappers()[place.mapper()];
  if (way.offer) {
    const std::lock_guard lock(reach.mutex);
    auto passed = way.offer(reach, peer, reach::Region::of(place));
    if (!passed || !*passed) return {};
  }
  attached_[std::size_t(member)].passed = reach::Region::of(place);
  return place;
}

RemoteLayout RemoteMemory::describe(int member, const layout::Data& data) {
  std::byte* const begin = data.begin();
  RemoteLayout where{{},
                     std::uint64_t(begin),
                     data.address - begin,
                     0,
                     data.view.run_count,
                     data.view.size,
                     data.view.extent,
                     data.view.low,
                     data.view.high};
  if (data.bytes == 0 || member == mailboxes_.me()) return where;
  const Protocol protocol = process_.settings().protocol;
  if (protocol == Protocol::copy_buffers || protocol == Protocol::cma) return where;
  if (!data.dense()) {
    // Peers must be able to read the runs, too.
    const std::size_t length = data.view.run_count * sizeof(layout::Run);
    if (!process_.segment().contains(data.view.runs, length)) return where;
    where.runs = std::uint64_t(reinterpret_cast<const std::byte*>(data.view.runs) - process_.segment().base());
  }
  where.place = place_for(member, begin, data.span());
  return where;
}

std::byte* RemoteMemory::resolve(int member, const reach::RemoteBuffer& place, std::shared_ptr<const void>& mapping) {
  if (!place.anything()) return nullptr;
  reach::Attachments& attached = attached_[std::size_t(member)].theirs;
  const auto* entry = attached.find(place);
  if (!entry) entry = attached.need(process_.reach(), mailboxes_.peer(member), place);
  if (!entry) return nullptr;
  mapping = entry->keep;
  return entry->resolve(place);
}

bool RemoteMemory::adopt(int member, const RemoteLayout& where, std::uint64_t bytes, InBlocks& part) {
  std::byte* const lowest = member == mailboxes_.me() ? reinterpret_cast<std::byte*>(where.address)
                                                      : resolve(member, where.place, part.mapping);
  if (!lowest) return false;
  part.other_data = {lowest + where.element, bytes, {}};
  if (member == mailboxes_.me()) return true;  // the caller knows the layout
  if (where.runs) {
    part.other_data.view = {reinterpret_cast<const layout::Run*>(mailboxes_.base(member) + where.runs),
                            where.run_count,
                            where.size,
                            where.extent,
                            where.low,
                            where.high};
  }
  return true;
}

std::optional<std::size_t> RemoteMemory::ListsOfRuns::take(memory::Arena& arena) {
  const std::lock_guard lock(mutex_);
  if (free_.empty() && !asked_) {
    asked_ = true;
    free_.reserve(places);
    if (auto offset = arena.allocate(places * bytes, 64))
      for (std::size_t k = 0; k < places; ++k) free_.push_back(*offset + k * bytes);
  }
  if (free_.empty()) return std::nullopt;
  const std::size_t place = free_.back();
  free_.pop_back();
  return place;
}

void RemoteMemory::ListsOfRuns::put_back(std::size_t place) {
  const std::lock_guard lock(mutex_);
  free_.push_back(place);
}

layout::View RemoteMemory::share(layout::Builder& builder, std::int64_t extent, std::shared_ptr<const void>& keep) {
  layout::View view = builder.view(extent);
  if (view.dense()) return view;
  const std::size_t bytes = builder.run_count() * sizeof(layout::Run);
  layout::Run* runs;
  const auto place = bytes <= ListsOfRuns::bytes ? lists_of_runs_.take(process_.arena()) : std::nullopt;
  if (place) {
    runs = reinterpret_cast<layout::Run*>(process_.segment().base() + *place);
    keep = std::shared_ptr<const void>(runs, [this, at = *place](const void*) { lists_of_runs_.put_back(at); });
  } else if (auto offset = process_.arena().allocate(bytes, 64)) {
    runs = reinterpret_cast<layout::Run*>(process_.segment().base() + *offset);
    keep = std::shared_ptr<const void>(runs, [this, at = *offset](const void*) { process_.arena().free(at); });
  } else {
    runs = static_cast<layout::Run*>(::operator new(bytes));
    keep = std::shared_ptr<const void>(runs, [](const void* p) { ::operator delete(const_cast<void*>(p)); });
  }
  std::memcpy(runs, view.runs, bytes);
  view.runs = runs;
  return view;
}

}  // namespace nearfield::messages
