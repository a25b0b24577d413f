// Both sides copy blocks from array to array, where each reaches the other's memory (transfers.hpp).
#include "engine/messages/protocols.hpp"

namespace nearfield::messages {
namespace {

bool fits_direct(Protocols& p, Request& request) {
  const Transfer& t = *request.offered.transfer;
  InBlocks& part = *request.in_blocks();
  if (!p.memory.adopt(request.member, t.from, t.length, part)) return false;
  if (request.member == p.mailboxes.me()) part.other_data.view = t.own ? t.own->data.view : layout::View{};
  return true;
}

bool helps_directly(Protocols& p, Request& request) {
  const Transfer& t = *request.offered.transfer;
  return request.member != p.mailboxes.me() && p.memory.adopt(request.member, t.to, t.length, *request.in_blocks());
}

bool copy_directly(Protocols&, Request& request, std::uint64_t position, std::uint64_t bytes, bool from_back) {
  const layout::Data& other = request.in_blocks()->other_data;
  if (from_back) layout::copy(other, request.data, position, bytes);
  else layout::copy(request.data, other, position, bytes);
  return true;
}

}  // namespace

const MessageProtocol Rows::direct = {
    .name = "direct",
    .state = State::direct,
    .fits = fits_direct,
    .copy = copy_directly,
    .helps = helps_directly,
    .count = &Counts::direct,
    .send = [](Protocols& p, Request& request, Guard& guard) { return p.transfers.send_blocks(p, request, guard); },
    .receive = [](Protocols& p, Request& request,
                  Guard& guard) { return p.transfers.receive_blocks(p, request, guard); },
};

}  // namespace nearfield::messages
