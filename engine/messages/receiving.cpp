// What arrives: matched, delivered, or kept until its receive is posted.
#include <cstring>
#include <new>

#include "engine/messages/guard.hpp"

namespace nearfield::messages {
namespace {

constexpr std::uint64_t kept_at_most = 8 << 20;  // bytes of one sender's unexpected messages

}  // namespace

void Messenger::complete(Request& request) {
  request.completed.store(true, std::memory_order_release);  // pairs with Request::complete
}

void Messenger::finish_eager(Request& request, int member, const Envelope& envelope, const std::byte* payload,
                             std::uint64_t bytes) {
  request.member = member;
  request.envelope = envelope;
  request.received = std::min(bytes, request.data.bytes);
  if (bytes > request.data.bytes) request.trouble = Trouble::truncated;
  layout::scatter(request.data, 0, payload, request.received);
  complete(request);
}

// False where there is no memory to keep it: it stays where it is, and its sender stops when there is no more room.
bool Messenger::deliver(int member, std::uint64_t word, const Record& record) {
  const Kind kind = kind_of(word);
  std::uint64_t transfer = 0;
  const std::byte* payload = record.payload;
  std::uint64_t bytes = bytes_of(word);
  if (kind != Kind::eager) {
    std::memcpy(&transfer, payload, sizeof transfer);
    payload += sizeof transfer;
    bytes -= sizeof transfer;
  }
  if (kind == Kind::withdraw) {
    withdraw(member, transfer);
    return true;
  }
  if (posted_.size()) {
    if (Entry* const entry = posted_.match(record.envelope)) {
      Request& request = static_cast<Request&>(*entry);
      request.posted = false;
      if (kind == Kind::transfer) {
        accept(request, member, transfer, record.envelope);
        return true;
      }
      if (kind == Kind::eager_synchronous) acknowledge(member, transfer, State::done);
      finish_eager(request, member, record.envelope, payload, bytes);
      return true;
    }
  }
  return keep_early(member, kind, record.envelope, bytes, transfer, payload);
}

// Some are kept: short messages often come before their receives.
Early* Messenger::new_early() {
  if (spare_early_.empty()) return new (std::nothrow) Early;
  Early* const early = spare_early_.back().release();
  spare_early_.pop_back();
  return early;
}

void Messenger::free_early(Early& early) {
  early.longer.reset();
  if (spare_early_.size() < spare_early_.capacity()) spare_early_.emplace_back(&early);
  else delete &early;
}

bool Messenger::keep_early(int member, Kind kind, const Envelope& envelope, std::uint64_t bytes, std::uint64_t transfer,
                           const std::byte* payload) {
  const bool copied = kind != Kind::transfer && bytes;
  Early* const early = new_early();
  if (!early) return false;
  early->bytes = bytes;
  if (copied && !early->fits()) {
    early->longer.reset(new (std::nothrow) std::byte[bytes]);
    if (!early->longer) return free_early(*early), false;
  }
  early->envelope = envelope;
  early->member = member;
  early->kind = kind;
  early->transfer = transfer;
  if (kind == Kind::transfer) {
    early->bytes = transfer_of(member, transfer).bytes;
  } else if (copied) {
    std::memcpy(early->payload(), payload, bytes);
    In& in = in_[member];
    in.kept += bytes;
    if (in.kept > kept_at_most && !in.saturated && in.box) in.box.saturate(in.saturated = true);
  }
  ++counts_.unexpected;
  unexpected_.push(*early);
  return true;
}

// The message is out of matching and belongs to us.
void Messenger::consume(Early& early, Request& request) {
  if (early.kind == Kind::transfer) {
    const int member = early.member;
    const std::uint64_t transfer = early.transfer;
    const Envelope envelope = early.envelope;
    free_early(early);
    return accept(request, member, transfer, envelope);
  }
  if (early.kind == Kind::eager_synchronous) acknowledge(early.member, early.transfer, State::done);
  In& in = in_[early.member];
  in.kept -= early.bytes;
  if (in.saturated && in.kept < kept_at_most / 2) in.box.saturate(in.saturated = false);
  finish_eager(request, early.member, early.envelope, early.payload(), early.bytes);
  free_early(early);
}

bool Messenger::probe(const Envelope& wanted, bool take, Found& found) {
  Guard guard(*this);
  UnexpectedEntry* entry = unexpected_.find(wanted);
  if (!entry) {
    if (!poll_locked(guard)) return false;
    entry = unexpected_.find(wanted);
    if (!entry) return false;
  }
  Early& early = static_cast<Early&>(*entry);
  found = {early.envelope, early.bytes, nullptr};
  if (take) {
    unexpected_.remove(early);
    found.message = &early;
  }
  return true;
}

}  // namespace nearfield::messages
