// What was offered goes through copy buffers of the sender (handing.cpp), the first of which its Transfer tells.
#include "engine/messages/protocols.hpp"

namespace nearfield::messages {

struct Messenger::Protocols::Staged {
  static bool fits(Messenger&, Request&) { return true; }
  static bool send(Messenger& m, Request& request, Guard& guard) {
    const std::uint64_t length = request.offered.transfer->length;
    const bool filled = m.fill_buffers(request, length, guard);
    if (request.in_buffers()->chain.position == length) request.way = State::done;
    return filled;
  }
  static bool receive(Messenger& m, Request& request, Guard& guard) {
    if (Chain& chain = request.in_buffers()->chain; !chain.buffer) {
      const Transfer& t = *request.offered.transfer;
      const std::uint64_t first = t.first.load(std::memory_order_acquire);  // pairs with continue_chain
      if (!first) return false;
      chain = {first, first};
      request.total = t.length;
    }
    return m.drain_buffers(request, guard) || request.way == State::done;
  }
};

const MessageProtocol Messenger::Protocols::staged = {
    .name = "staged",
    .state = State::staged,
    .fits = Staged::fits,
    .count = &Counts::staged,
    .send = Staged::send,
    .receive = Staged::receive,
};

}  // namespace nearfield::messages
