// Both sides copy blocks from array to array, where each reaches the other's memory (transfer.cpp).
#include "engine/messages/protocols.hpp"

namespace nearfield::messages {

struct Messenger::Protocols::Direct {
  static bool fits(Messenger& m, Request& request) {
    const Transfer& t = *request.offered.transfer;
    InBlocks& part = *request.in_blocks();
    if (!m.adopt(request.member, t.from, t.length, part)) return false;
    if (request.member == m.me_) part.other_data.view = t.own ? t.own->data.view : layout::View{};
    return true;
  }
  static bool helps(Messenger& m, Request& request) {
    const Transfer& t = *request.offered.transfer;
    return request.member != m.me_ && m.adopt(request.member, t.to, t.length, *request.in_blocks());
  }
  static bool copy(Messenger&, Request& request, std::uint64_t position, std::uint64_t bytes, bool from_back) {
    const layout::Data& other = request.in_blocks()->other_data;
    if (from_back) layout::copy(other, request.data, position, bytes);
    else layout::copy(request.data, other, position, bytes);
    return true;
  }
};

const MessageProtocol Messenger::Protocols::direct = {
    .name = "direct",
    .state = State::direct,
    .fits = Direct::fits,
    .copy = Direct::copy,
    .helps = Direct::helps,
    .count = &Counts::direct,
    .send = shared<&Messenger::send_blocks>,
    .receive = shared<&Messenger::receive_blocks>,
};

}  // namespace nearfield::messages
