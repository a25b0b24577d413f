#include "engine/messages/single_copy.hpp"

#include "engine/messages/protocols.hpp"

namespace nearfield::messages {
namespace {

// ---------------------------------------------------------------- each side reaches the other's memory

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

// ---------------------------------------------------------------- the kernel reads and writes the other's memory

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
  const reach::MemoryMapper& calls = *p.memory.calls(request.member);
  const reach::Peer& peer = p.mailboxes.peer(request.member);
  std::byte* const own = request.data.address + position;
  return from_back ? bool(calls.write(peer, own, t.to.address + position, bytes))
                   : bool(calls.read(peer, own, t.from.address + position, bytes));
}

constexpr SingleCopy rows[] = {
    {"direct", State::direct, &Counts::direct, fits_direct, helps_directly, copy_directly},
    {"cma", State::by_calls, &Counts::by_calls, fits_cma, helps_by_cma, copy_by_cma},
};

}  // namespace

const SingleCopy& single_copy(State state) {
  static_assert(rows[0].state == State::direct && rows[1].state == State::by_calls);
  return rows[state == State::by_calls];
}

const SingleCopy* single_copy_for(Protocols& protocols, Request& receive) {
  for (const SingleCopy& each : rows)
    if (each.fits(protocols, receive)) return &each;
  return nullptr;
}

}  // namespace nearfield::messages
