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

bool Messenger::keep_early(int member, Kind kind, const Envelope& envelope, std::uint64_t bytes, std::uint64_t transfer,
                           const std::byte* payload) {
  const bool copied = kind != Kind::transfer && bytes;
  std::unique_ptr<Early> early(new (std::nothrow) Early);
  if (!early) return false;
  if (copied) early->payload.reset(new (std::nothrow) std::byte[bytes]);
  if (copied && !early->payload) return false;
  early->envelope = envelope;
  early->member = member;
  early->kind = kind;
  early->transfer = transfer;
  early->bytes = bytes;
  if (kind == Kind::transfer) {
    early->bytes = transfer_of(member, transfer).bytes;
  } else if (copied) {
    std::memcpy(early->payload.get(), payload, bytes);
    In& in = in_[member];
    in.kept += bytes;
    if (in.kept > kept_at_most && !in.saturated && in.box) in.box.saturate(in.saturated = true);
  }
  ++counts_.unexpected;
  unexpected_.push(*early.release());
  return true;
}

// The message is out of matching and belongs to us.
void Messenger::consume(Early& message, Request& request) {
  const std::unique_ptr<Early> early(&message);
  if (early->kind == Kind::transfer) return accept(request, early->member, early->transfer, early->envelope);
  if (early->kind == Kind::eager_synchronous) acknowledge(early->member, early->transfer, State::done);
  if (early->payload) {
    In& in = in_[early->member];
    in.kept -= early->bytes;
    if (in.saturated && in.kept < kept_at_most / 2) in.box.saturate(in.saturated = false);
  }
  finish_eager(request, early->member, early->envelope, early->payload.get(), early->bytes);
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
