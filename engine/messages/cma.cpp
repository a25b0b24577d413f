// Both sides copy blocks by calls of the kernel, which read and write the other's memory (transfers.hpp).
#include "engine/messages/protocols.hpp"

namespace nearfield::messages {
namespace {

// Calls need no turn of the sender.
bool fits_cma(Protocols& p, Request& request) {
  const RemoteLayout& from = request.offered.transfer->from;
  const Protocol protocol = p.mailboxes.process().settings().protocol;
  return p.memory.calls(request.member) && request.data.dense() && from.address && from.run_count == 0 &&
         (protocol == Protocol::automatic || protocol == Protocol::cma);
}

bool helps_by_cma(Protocols& p, Request& request) {
  return request.member != p.mailboxes.me() && p.memory.calls(request.member);
}

bool copy_by_cma(Protocols& p, Request& request, std::uint64_t position, std::uint64_t bytes, bool from_back) {
  const Transfer& t = *request.offered.transfer;
  const reach::MemoryMapper& way = *p.memory.calls(request.member);
  const reach::Peer& peer = p.mailboxes.peer(request.member);
  std::byte* const own = request.data.address + position;
  return from_back ? bool(way.write(peer, own, t.to.address + position, bytes))
                   : bool(way.read(peer, own, t.from.address + position, bytes));
}

}  // namespace

const MessageProtocol Rows::cma = {
    .name = "cma",
    .state = State::by_calls,
    .fits = fits_cma,
    .copy = copy_by_cma,
    .helps = helps_by_cma,
    .count = &Counts::by_calls,
    .send = [](Protocols& p, Request& request, Guard& guard) { return p.transfers.send_blocks(p, request, guard); },
    .receive = [](Protocols& p, Request& request,
                  Guard& guard) { return p.transfers.receive_blocks(p, request, guard); },
};

}  // namespace nearfield::messages
