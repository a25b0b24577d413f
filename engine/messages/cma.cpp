// Both sides copy blocks by calls of the kernel, which read and write the other's memory (transfer.cpp).
#include "engine/messages/protocols.hpp"

namespace nearfield::messages {

struct Messenger::Protocols::Cma {
  // Calls need no turn of the sender.
  static bool fits(Messenger& m, Request& request) {
    const RemoteLayout& from = request.offered.transfer->from;
    const Protocol protocol = m.process_.settings().protocol;
    return m.calls_[std::size_t(request.member)] && request.data.dense() && from.address && from.run_count == 0 &&
           (protocol == Protocol::automatic || protocol == Protocol::cma);
  }
  static bool helps(Messenger& m, Request& request) {
    return request.member != m.me_ && m.calls_[std::size_t(request.member)];
  }
  static bool copy(Messenger& m, Request& request, std::uint64_t position, std::uint64_t bytes, bool from_back) {
    const Transfer& t = *request.offered.transfer;
    const reach::MemoryMapper& way = *m.calls_[std::size_t(request.member)];
    const Peer& peer = *m.peer_[std::size_t(request.member)];
    std::byte* const own = request.data.address + position;
    return from_back ? bool(way.write(peer, own, t.to.address + position, bytes))
                     : bool(way.read(peer, own, t.from.address + position, bytes));
  }
};

const MessageProtocol Messenger::Protocols::cma = {
    .name = "cma",
    .state = State::by_calls,
    .fits = Cma::fits,
    .copy = Cma::copy,
    .helps = Cma::helps,
    .count = &Counts::by_calls,
    .send = shared<&Messenger::send_blocks>,
    .receive = shared<&Messenger::receive_blocks>,
};

}  // namespace nearfield::messages
