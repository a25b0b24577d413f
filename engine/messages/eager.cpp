// Eager messages: the record carries the message, and the send is complete when it is written.
#include <algorithm>

#include "engine/messages/protocols.hpp"

namespace nearfield::messages {

std::uint64_t Messenger::eager_limit(const Out& out) const {
  if (process_.settings().protocol == Protocol::queue || out.without_box) return cell_payload;
  return std::min<std::uint64_t>(process_.settings().eager_bytes, largest_payload(ring_bytes_));
}

void Messenger::finish_eager(Request& request, int member, const Envelope& envelope, const std::byte* payload,
                             std::uint64_t bytes) {
  request.member = member;
  request.envelope = envelope;
  request.received = std::min(bytes, request.data.bytes);
  if (bytes > request.data.bytes) request.error = ErrorKind::truncated, request.total = bytes;
  layout::scatter(request.data, 0, payload, request.received);
  complete(request);
}

struct Messenger::Protocols::Eager {
  static Cost cost(Messenger& m, const Request& request) {
    const std::uint64_t bytes = request.data.bytes;
    if (request.mode != Mode::standard || bytes > m.eager_limit(m.out_[std::size_t(request.member)]))
      return Cost::never;
    return bytes <= m.in_record_ ? Cost::record : Cost::long_record;
  }
  static Started start(Messenger& m, Request& request, RemoteLayout&) {
    if (!m.push(request.member, Kind::eager, request.envelope, {}, request.data)) return Started::no_room;
    m.complete(request);
    return Started::yes;
  }
  static void deliver(Messenger& m, Request& request, const Arrived& message) {
    m.finish_eager(request, message.member, message.envelope, message.payload, message.bytes);
  }
};

const MessageProtocol Messenger::Protocols::eager = {
    .name = "eager",
    .cost = Eager::cost,
    .start = Eager::start,
    .carries = true,
    .deliver = Eager::deliver,
};

}  // namespace nearfield::messages
