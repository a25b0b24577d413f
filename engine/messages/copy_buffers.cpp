// Messages whose record tells the first of the copy buffers that they go through (handing.cpp).
#include "engine/messages/protocols.hpp"

namespace nearfield::messages {

// Whether copy buffers are better than a single copy; `where`: where the data lies, if that had to be looked at. The
// sender of a message may compute as soon as its call has returned, so what its receiver can reach or read by calls
// goes through copy buffers only where they take all of it at once, or where its call does not return before.
bool Messenger::goes_by_buffers(const Request& request, RemoteLayout& where) {
  const std::uint64_t bytes = request.data.bytes;
  const bool whole = request.attended || bytes <= longest_whole();
  if (bytes <= copied_always_ && whole) return true;
  where = describe(request.member, request.data);
  if (process_.settings().protocol == Protocol::cma) return false;
  const bool mapped = where.place.reachable();
  if (!mapped && !(calls_[std::size_t(request.member)] && request.data.dense())) return true;
  if (!whole) return false;
  // Calls of the kernel may be better, where the receiver would try them (accept).
  return !(mapped || tries_ways_) || out_[std::size_t(request.member)].offers.skip(bytes, mapped);
}

struct Messenger::Protocols::CopyBuffers {
  static Cost cost(Messenger& m, const Request& request) {
    return request.member == m.me_ ? Cost::never : Cost::buffers;
  }
  static Started start(Messenger& m, Request& request, RemoteLayout& where) {
    return m.goes_by_buffers(request, where) && m.begin_chain(request) ? Started::yes : Started::no;
  }
  static std::uint64_t recall(Messenger&, const Request& request) {
    const InBuffers& part = *request.in_buffers();
    return part.tells && !request.withdrawn ? part.chain.first : 0;
  }
  static void keep(Messenger& m, UnexpectedMessage& message) {
    In& in = m.in_[std::size_t(message.member)];
    in.waiting += message.bytes;
    if (in.waiting > m.longest_whole()) m.copy_out(message);
  }
  static void unkeep(Messenger& m, UnexpectedMessage& message) {
    m.in_[std::size_t(message.member)].waiting -= message.bytes;
  }
  static void refuse(Messenger& m, int member, std::uint64_t first) {
    m.buffer_of(member, first).match.store(Match::cancelled, std::memory_order_release);  // pairs with pump_chain
    m.wake(member);
  }
  static bool receive(Messenger& m, Request& request, Guard& guard) {
    return m.drain_buffers(request, guard) || request.way == State::done;
  }
};

const MessageProtocol Messenger::Protocols::copy_buffers = {
    .name = "copy buffers",
    .cost = CopyBuffers::cost,
    .start = CopyBuffers::start,
    .send = shared<&Messenger::pump_chain>,
    .recall = CopyBuffers::recall,
    .note = sizeof(Handed),
    .deliver = shared<&Messenger::accept_buffers>,
    .keep = CopyBuffers::keep,
    .unkeep = CopyBuffers::unkeep,
    .refuse = CopyBuffers::refuse,
    .receive = CopyBuffers::receive,
};

}  // namespace nearfield::messages
