// What was offered goes through copy buffers of the sender (copy_chains.hpp), the first of which its Transfer tells.
#include "engine/messages/protocols.hpp"

namespace nearfield::messages {
namespace {

bool send_staged(Protocols& p, Request& request, Guard& guard) {
  const std::uint64_t length = request.offered.transfer->length;
  const bool filled = p.chains.fill(request, length, guard);
  if (request.in_buffers()->chain.position == length) request.way = State::done;
  return filled;
}

bool receive_staged(Protocols& p, Request& request, Guard& guard) {
  if (Chain& chain = request.in_buffers()->chain; !chain.buffer) {
    const Transfer& t = *request.offered.transfer;
    const std::uint64_t first = t.first.load(std::memory_order_acquire);  // SYNC: transfer-first
    if (!first) return p.transfers.ask_no_more(p, request);
    chain = {first, first};
    request.total = t.length;
    // Its sender is not asked, once copy buffers have won: what it takes to answer tells nothing.
    if (request.offered.accepted) request.offered.asked = waiting::nanoseconds() - request.offered.accepted;
  }
  return p.chains.drain(request, guard) || request.way == State::done;
}

}  // namespace

const MessageProtocol Rows::staged = {
    .name = "staged",
    .state = State::staged,
    .fits = [](Protocols&, Request&) { return true; },
    .count = &Counts::staged,
    .send = send_staged,
    .receive = receive_staged,
};

}  // namespace nearfield::messages
