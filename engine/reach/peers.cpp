#include "engine/reach/peers.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/base/log.hpp"

namespace nearfield::reach {

bool Peer::gone() const {
  if (known_gone() || pidfd < 0) return known_gone();
  pollfd ready{pidfd, POLLIN, 0};
  const bool gone = poll(&ready, 1, 0) == 1;
  if (gone) known_gone_.store(true, std::memory_order_relaxed);
  return gone;
}

Result<std::unique_ptr<Peers>> Peers::create(memory::Segment& segment, std::uint32_t left_out) {
  auto mailbox = Mailbox::open();
  if (!mailbox) return mailbox.error();
  std::unique_ptr<Peers> peers(new Peers(segment, std::move(*mailbox)));
  std::uint32_t open = 0;
  for (std::size_t w = 0; w < mapper_count; ++w) {
    if (left_out >> w & 1) continue;
    const MemoryMapper& mapper = *mappers()[w];
    auto advertised = mapper.open(*peers);
    if (advertised) {
      peers->advertised_[w] = *advertised;
      open |= 1u << w;
      peers->to_close_ |= 1u << w;
    } else {
      log_line(LogLevel::debug, "%s is no way to reach memory here: %s", mapper.title, advertised.error().text.c_str());
    }
  }
  peers->open_.store(open, std::memory_order_relaxed);
  return peers;
}

Peers::~Peers() {
  for (auto& [identity, peer] : peers_) part(*peer);
  close();
  for (auto& [identity, peer] : peers_)
    if (peer->pidfd >= 0) ::close(peer->pidfd);
}

void Peers::part(Peer& peer) {
  for (std::size_t w = 0; w < mapper_count; ++w)
    if (mappers()[w]->part && peer.mappers >> w & 1) mappers()[w]->part(*this, peer);
}

void Peers::close() {
  open_.store(0, std::memory_order_relaxed);
  for (std::size_t w = 0; w < mapper_count; ++w)
    if (mappers()[w]->close && to_close_ >> w & 1) mappers()[w]->close(*this);
  to_close_ = 0;
}

Card Peers::card() const {
  auto* const header = reinterpret_cast<const SegmentHeader*>(segment_.base());
  Card card{};
  card.address = mailbox_.address();
  card.pid = getpid();
  card.fd = segment_.fd();
  card.header = std::uint64_t(header);
  card.probe = header->probe;
  for (std::size_t w = 0; w < mapper_count; ++w) card.advertised[w] = advertised_[w];
  card.mappers = open();
  return card;
}

Peer* Peers::find(const std::string& identity) {
  const auto known = peers_.find(identity);
  return known == peers_.end() ? nullptr : known->second.get();
}

Result<bool> Peers::collect() {
  constexpr std::uint64_t generations = (std::uint64_t{1} << 56) - 1;
  bool came = false;
  for (;;) {
    auto arrived = mailbox_.receive();
    if (!arrived) return arrived.error();
    if (!*arrived) return came;
    came = true;
    auto mapped = memory::PeerSegment::map((*arrived)->fd);
    const bool gone = (*arrived)->what >> 63;
    const std::size_t mapper = (*arrived)->what >> 56 & 0x7f;
    Peer* const peer = find((*arrived)->from);
    if (!peer) {
      if (!mapped) return mapped.error();
      if ((*arrived)->what == letter(0, 0)) admit((*arrived)->from, std::move(*mapped), (*arrived)->pid);
    } else if (mapper < mapper_count && mappers()[mapper]->take) {
      // What cannot be mapped here is taken as well: no other letter comes, and nobody may wait for one.
      if (gone) mapped = Error{"a peer's memory has gone by a fork"};
      mappers()[mapper]->take(*this, *peer, (*arrived)->what & generations, std::move(mapped));
    }
  }
}

void Peers::admit(const std::string& identity, memory::PeerSegment segment, pid_t pid) {
  auto peer = std::make_unique<Peer>(std::move(segment), pid);
  if (pid > 0) peer->pidfd = int(syscall(SYS_pidfd_open, pid, 0));
  peers_.emplace(identity, std::move(peer));
}

Result<bool> Peers::send_segment(const MailboxAddress& to) {
  auto sent = mailbox_.send(to, segment_.fd(), letter(0, 0));
  if (!sent) return sent.error();
  if (*sent == Mailbox::Sent::again) return false;
  note_sent(to);
  return true;
}

Result<void> Peers::fetch(const Card& card) {
  auto mapped = memory::PeerSegment::open(pid_t(card.pid), int(card.fd));
  if (!mapped) return mapped.error();
  if (reinterpret_cast<const SegmentHeader*>(mapped->base())->probe != card.probe)
    return Error{"process " + std::to_string(card.pid) + " is another process in this PID namespace"};
  admit(card.address.identity(), std::move(*mapped), pid_t(card.pid));
  return {};
}

Peer& Peers::meet(const Card& card) {
  Peer& peer = *peers_.at(card.address.identity());
  if (peer.card.header) return peer;
  peer.card = card;
  peer.common_mappers = card.mappers & open();
  for (std::size_t w = 0; w < mapper_count; ++w) {
    if (!(peer.common_mappers >> w & 1)) continue;
    auto reached = mappers()[w]->meet(*this, peer, card.advertised[w]);
    if (reached) peer.mappers |= 1u << w;
    else
      log_line(LogLevel::info, "%s does not reach the memory of process %d: %s; copy buffers are used instead",
               mappers()[w]->title, int(peer.pid), reached.error().text.c_str());
  }
  return peer;
}

Attached Peers::attach(Peer& peer, const Region& region) {
  const std::size_t mapper = region.mapper();
  if (mapper >= mapper_count || !mappers()[mapper]->attach) return {.why = "a place that means nothing here"};
  if (!(peer.mappers & open() & 1u << mapper)) return {.why = std::string(mappers()[mapper]->title) + " is out here"};
  return mappers()[mapper]->attach(*this, peer, region);
}

RemoteBuffer Peers::place(const void* address, std::size_t bytes, std::uint32_t by) const {
  if (bytes == 0) return RemoteBuffer::nothing();
  by &= open();
  for (std::size_t w = 0; w < mapper_count; ++w) {
    if (!(by >> w & 1) || !mappers()[w]->place) continue;
    if (const RemoteBuffer place = mappers()[w]->place(*this, w, address, bytes); place.reachable()) return place;
  }
  return {};
}

const MemoryMapper* Peers::calls(const Peer& peer) {
  for (std::size_t w = 0; w < mapper_count; ++w)
    if (mappers()[w]->read && peer.mappers >> w & 1) return mappers()[w];
  return nullptr;
}

void Peers::leave_out(std::size_t mapper, const std::string& why) {
  if (open_.fetch_and(~(1u << mapper), std::memory_order_relaxed) >> mapper & 1)
    log_line(LogLevel::info, "%s is not used: %s", mappers()[mapper]->title, why.c_str());
}

}  // namespace nearfield::reach
