// The Messenger's beginning and end, and requests that are taken back.
#include "engine/messages/messenger.hpp"

#include <algorithm>

#include "engine/messages/fastbox_room.hpp"
#include "engine/messages/protocols.hpp"
#include "engine/messages/roads.hpp"

namespace nearfield::messages {
namespace {

constexpr std::size_t spare_unexpected = 64;  // unexpected messages that are not allocated again

}  // namespace

Messenger::Messenger(team::Team& base)
    : process_(base.process()), me_(base.rank()), members_(base.size()), out_(base.size()), in_(base.size()) {}

Messenger::~Messenger() { process_.progress.remove(*this); }

// Local. Nothing may be missing once the members have agreed. nullptr without memory.
std::unique_ptr<Messenger> Messenger::prepare(team::Team& base, bool threaded) try {
  std::unique_ptr<Messenger> m(new Messenger(base));
  const auto members = std::size_t(m->members_);
  m->base_.reserve(members);
  m->peer_.reserve(members);
  m->box_.reserve(members);
  m->attached_.reserve(members);
  m->calls_.reserve(members);
  {
    const std::lock_guard lock(m->process_.reach().mutex);
    for (int r = 0; r < m->members_; ++r) {
      m->calls_.push_back(base.peer(r) ? reach::Peers::calls(*base.peer(r)) : nullptr);
      m->attached_.emplace_back(m->process_.reach(), base.peer(r));
    }
  }
  m->talking_.reserve(members);
  m->silent_.reserve(members);
  m->spare_unexpected_.reserve(spare_unexpected);
  if (threaded) m->set_threaded();
  m->ring_bytes_ = fastbox_bytes(m->members_);
  for (int behind = most_fastboxes; behind < m->members_; ++behind)
    m->out_[std::size_t((m->me_ + behind) % m->members_)].without_box = true;
  m->buffers_ = &m->process_.copy_buffers();
  m->lent_.resize(std::max<std::size_t>(m->buffers_->span() / memory::CopyBuffers::unit, 1));
  const Settings& settings = m->process_.settings();
  const bool oversubscribed = m->process_.policy().oversubscribed, automatic = settings.protocol == Protocol::automatic;
  const Limits limits = messages::limits(settings, oversubscribed, m->process_.machine().own);
  m->in_record_ = limits.in_record;
  m->copied_always_ = limits.copied_always;
  m->tries_ways_ = settings.choosing == Choosing::trial && automatic && !oversubscribed;
  // Not yet touched pages are zero: cells cost memory as they are first used.
  auto offset = m->process_.arena().allocate(sizeof(MessageMailbox), 4096);
  // Some transfers from the beginning: whoever has one can always go on, if only through the spare buffer.
  if (offset && m->process_.settings().messages && m->add_transfers()) {
    m->mine_ = reinterpret_cast<MessageMailbox*>(m->process_.segment().base() + *offset);
    m->mine_->tail.store(0, std::memory_order_relaxed);
    m->mine_->head.store(0, std::memory_order_relaxed);
    m->mine_->answered.store(0, std::memory_order_relaxed);
    m->mine_->asleep.store(0, std::memory_order_relaxed);
    m->mine_->elsewhere.store(0, std::memory_order_relaxed);
    m->mine_->blocked_wake_word.store(0, std::memory_order_relaxed);
    for (Cell& cell : m->mine_->cell) cell.busy.store(0, std::memory_order_relaxed);
  }
  return m;
} catch (const std::bad_alloc&) {
  return nullptr;
}

Result<std::unique_ptr<Messenger>> Messenger::create(team::Team& base, team::Bootstrap& bootstrap, bool threaded) {
  auto m = prepare(base, threaded);
  const std::uint64_t mine =
      m && m->mine_ ? std::uint64_t(reinterpret_cast<std::byte*>(m->mine_) - m->process_.segment().base()) : 0;
  auto offsets = team::room_for<std::uint64_t>(base.size());
  if (!bootstrap.allgather(&mine, offsets.data(), sizeof mine)) return Error{"the host's allgather failed"};
  for (const std::uint64_t each : offsets)
    if (!each) return Error{"messages are switched off, or a member has no shared memory for its mailbox"};
  for (int r = 0; r < m->members_; ++r) {
    m->base_.push_back(base.segment_of(r));
    m->peer_.push_back(base.peer(r));
    m->box_.push_back(reinterpret_cast<MessageMailbox*>(m->base_[r] + offsets[r]));
  }
  m->process_.progress.add(*m);
  return m;
}

void Messenger::cancel(Request& request) {
  Guard guard(*this);
  cancel_locked(request);
}

bool Messenger::cancel_locked(Request& request) {
  if (request.complete()) return true;
  if (!request.is_send) {
    if (!request.posted) return true;
    posted_.remove(request);
    request.posted = false;
    request.cancelled = true;
    complete(request);
    return true;
  }
  if (!request.under_way.linked() || request.busy) return true;
  if (request.waits) {  // nobody has heard of it yet
    request.under_way.remove();
    --waiting_for_room_;
    if (request.offered.transfer) {
      process_.reach().noticeboard.put_back(request.offered.slot);
      free_transfers_.push_back(request.offered.offset);
    }
    request.cancelled = true;
    complete(request);
    return true;
  }
  // Only the receiver knows whether it is matched. Without room for the question the message is sent as usual.
  const auto recall = request.protocol->recall;
  const std::uint64_t what = recall ? recall(*this, request) : 0;
  if (!what) return true;
  if (!out_[request.member].waiting.empty() ||
      !push(request.member, Kind::withdraw, request.envelope, std::as_bytes(std::span(&what, 1)), {}))
    return false;
  request.withdrawn = true;
  wake_blocked(request.member);
  return true;
}

void Messenger::withdraw(int member, std::uint64_t transfer) {
  UnexpectedEntry* const entry = unexpected_.find_named(name_of(member, transfer), [](const UnexpectedEntry& e) {
    return static_cast<const UnexpectedMessage&>(e).kind != Kind::eager;
  });
  if (!entry) return;  // matched already
  unexpected_.remove(*entry);
  auto& unexpected = static_cast<UnexpectedMessage&>(*entry);
  settle(unexpected);
  const MessageProtocol& protocol = Protocols::of(unexpected.kind);
  if (protocol.unkeep) protocol.unkeep(*this, unexpected);
  free_unexpected(unexpected);
  protocol.refuse(*this, member, transfer);
}

void Messenger::abandon(Request& request) {
  Guard guard(*this);
  if (request.complete()) return;
  if (request.posted) posted_.remove(request);
  if (request.under_way.linked()) {
    // Its Transfer stays as it is: the other side may still look at it.
    waiting_for_room_ -= request.waits;
    request.under_way.remove();
    stop_looking(request);
    if (request.is_send) end_chain(request);
    if (request.is_send && request.offered.transfer) request.offered.transfer->own = nullptr;
  }
  disinherit(request);
  process_.reach().noticeboard.put_back(request.offered.slot);
  request.part = {};
  request.error = ErrorKind::broken;
  complete(request);
}

}  // namespace nearfield::messages
