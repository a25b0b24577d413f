// Eager messages: the record carries the message, and the send is complete when it is written.
#include <algorithm>

#include "engine/messages/protocols.hpp"

namespace nearfield::messages {

void deliver_eager(Protocols& protocols, Request& request, const Arrived& message) {
  request.member = message.member;
  request.envelope = message.envelope;
  request.received = std::min(message.bytes, request.data.bytes);
  if (message.bytes > request.data.bytes) request.error = ErrorKind::truncated, request.total = message.bytes;
  layout::scatter(request.data, 0, message.payload, request.received);
  protocols.continuations.complete(request);
}

namespace {

Cost cost_of_eager(Protocols& p, const Request& request) {
  const std::uint64_t bytes = request.data.bytes;
  if (request.mode != Mode::standard || bytes > p.channels.longest_eager(request.member)) return Cost::never;
  return bytes <= p.limits.in_record ? Cost::record : Cost::long_record;
}

Started start_eager(Protocols& p, Request& request, RemoteLayout&) {
  if (!p.channels.push(request.member, Kind::eager, request.envelope, {}, request.data)) return Started::no_room;
  p.continuations.complete(request);
  return Started::yes;
}

}  // namespace

const MessageProtocol Rows::eager = {
    .name = "eager",
    .cost = cost_of_eager,
    .start = start_eager,
    .carries = true,
    .deliver = deliver_eager,
};

}  // namespace nearfield::messages
