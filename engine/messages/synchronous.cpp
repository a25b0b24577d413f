// Synchronous messages that are short: the record carries the message and the offset of a Transfer, which the receiver
// marks as matched (answers.cpp). So go short ones of any mode that no record may carry unasked.
#include "engine/messages/protocols.hpp"

namespace nearfield::messages {
namespace {

Cost cost_of_synchronous(Protocols&, const Request& request) {
  constexpr std::size_t longest = 512;  // bytes, with the offset
  if (request.data.bytes + sizeof(std::uint64_t) > longest) return Cost::never;
  return request.mode == Mode::synchronous ? Cost::record : Cost::offer;
}

Started start_synchronous(Protocols& p, Request& request, RemoteLayout& where) {
  return p.transfers.offer(request, where, Kind::eager_synchronous, request.data);
}

void deliver_synchronous(Protocols& p, Request& request, const Arrived& message) {
  p.transfers.acknowledge(message.member, message.note.first, State::done);
  deliver_eager(p, request, message);
}

}  // namespace

const MessageProtocol Rows::synchronous = {
    .name = "synchronous",
    .cost = cost_of_synchronous,
    .start = start_synchronous,
    .recall = [](const Request& request) { return request.offered.offset; },
    .note = sizeof(std::uint64_t),
    .carries = true,
    .acknowledged = true,
    .deliver = deliver_synchronous,
    .refuse = [](Protocols& p, int member,
                 std::uint64_t transfer) { p.transfers.acknowledge(member, transfer, State::cancelled); },
};

}  // namespace nearfield::messages
