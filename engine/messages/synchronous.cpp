// Synchronous messages that are short: the record carries the message and the offset of a Transfer, which the receiver
// marks as matched (answers.cpp). So go short ones of any mode that no record may carry unasked.
#include "engine/messages/protocols.hpp"

namespace nearfield::messages {

struct Messenger::Protocols::Synchronous {
  static Cost cost(Messenger&, const Request& request) {
    constexpr std::size_t longest = 512;  // bytes, with the offset
    if (request.data.bytes + sizeof(std::uint64_t) > longest) return Cost::never;
    return request.mode == Mode::synchronous ? Cost::record : Cost::offer;
  }
  static Started start(Messenger& m, Request& request, RemoteLayout& where) {
    return m.offer(request, where, Kind::eager_synchronous, request.data);
  }
  static void deliver(Messenger& m, Request& request, const Arrived& message) {
    m.acknowledge(message.member, message.told.first, State::done);
    m.finish_eager(request, message.member, message.envelope, message.payload, message.bytes);
  }
};

const MessageProtocol Messenger::Protocols::synchronous = {
    .name = "synchronous",
    .cost = Synchronous::cost,
    .start = Synchronous::start,
    .recall = recall_offer,
    .note = sizeof(std::uint64_t),
    .carries = true,
    .acknowledged = true,
    .deliver = Synchronous::deliver,
    .refuse = refuse_offer,
};

}  // namespace nearfield::messages
