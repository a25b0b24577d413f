// Messages that are offered to their receiver, which chooses how they move (transfers.hpp).
#include "engine/messages/protocols.hpp"

namespace nearfield::messages {

const MessageProtocol Rows::offered = {
    .name = "offered",
    .cost = [](Protocols&, const Request&) { return Cost::offer; },
    .start = [](Protocols& p, Request& request,
                RemoteLayout& where) { return p.transfers.offer(request, where, Kind::transfer, {}); },
    .recall = [](const Request& request) { return request.offered.offset; },
    .note = sizeof(std::uint64_t),
    .acknowledged = true,
    .deliver = [](Protocols& p, Request& request, const Arrived& message) { p.transfers.accept(p, request, message); },
    .keep = [](Protocols& p,
               UnexpectedMessage& message) { message.bytes = p.transfers.of(message.member, message.transfer).bytes; },
    .refuse = [](Protocols& p, int member,
                 std::uint64_t transfer) { p.transfers.acknowledge(member, transfer, State::cancelled); },
};

}  // namespace nearfield::messages
