// Messages whose record tells the first of the copy buffers that they go through (copy_chains.hpp).
#include "engine/messages/protocols.hpp"

namespace nearfield::messages {
namespace {

Cost cost_of_buffers(Protocols& p, const Request& request) {
  return request.member == p.mailboxes.me() ? Cost::never : Cost::buffers;
}

// Whether copy buffers are better than a single copy; `where`: where the data lies, if that had to be looked at. The
// sender of a message may compute as soon as its call has returned, so what its receiver can reach or read by calls
// goes through copy buffers only where they take all of it at once, or where its call does not return before.
bool goes_by_buffers(Protocols& p, const Request& request, RemoteLayout& where) {
  const std::uint64_t bytes = request.data.bytes;
  const bool whole = request.attended || bytes <= p.chains.longest_whole();
  if (bytes <= p.limits.copied_always && whole) return true;
  where = p.memory.describe(request.member, request.data);
  if (p.mailboxes.process().settings().protocol == Protocol::cma) return false;
  const bool mapped = where.place.reachable();
  if (!mapped && !(p.memory.calls(request.member) && request.data.dense())) return true;
  return whole && p.transfers.skips_offer(request, mapped);
}

Started start_buffers(Protocols& p, Request& request, RemoteLayout& where) {
  return goes_by_buffers(p, request, where) && p.chains.begin(request) ? Started::yes : Started::no;
}

}  // namespace

const MessageProtocol Rows::copy_buffers = {
    .name = "copy buffers",
    .cost = cost_of_buffers,
    .start = start_buffers,
    .send = [](Protocols& p, Request& request, Guard& guard) { return p.chains.send(request, guard); },
    .recall = CopyChains::recall,
    .note = sizeof(BuffersNote),
    .deliver = [](Protocols& p, Request& request, const Arrived& message) { p.chains.accept(request, message); },
    .keep = [](Protocols& p, UnexpectedMessage& message) { p.chains.keep(message); },
    .unkeep = [](Protocols& p, UnexpectedMessage& message) { p.chains.unkeep(message); },
    .refuse = [](Protocols& p, int member, std::uint64_t first) { p.chains.refuse(member, first); },
    .receive = [](Protocols& p, Request& request,
                  Guard& guard) { return p.chains.drain(request, guard) || request.way == State::done; },
};

}  // namespace nearfield::messages
