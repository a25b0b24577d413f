// Answers to messages that have a Transfer.
//
//   sender                                            receiver
//   offers a Transfer: listed = 0, looks at its       matched: state
//     state in every poll
//   many wait already: listed = 1, looks no more      matched: state, answered_before = answered, answered = this one
//   takes the whole list: answered = 0 <--------------
//
// So the cost of a poll does not grow with the number of messages that wait. Answered messages go on in the order of
// their answers, which is the order at the receiver.
//
// The list is a stack, emptied by one exchange. No entry is put in twice, or used again before it was taken out.
#include <array>
#include <span>
#include <utility>

#include "engine/messages/protocols.hpp"

namespace nearfield::messages {
namespace {

constexpr unsigned most_looked_at = 16;  // sends whose answers are looked for in every poll

}  // namespace

// ---------------------------------------------------------------- the sender's side

bool Transfers::offer(Request& request, const RemoteLayout& where, std::uint64_t first) {
  if (!begin(request, where, first)) {
    // Sends under way will give back what they hold, so there will be room.
    if (first || !in_progress_.sends.empty() || any_offered() || any_retired()) return false;
    request.error = ErrorKind::no_memory;
    continuations_.complete(request);
    return true;
  }
  const bool looked_at = offered_count_ < most_looked_at;
  request.offered.transfer->listed = !looked_at;
  const Note note{request.offered.offset, request.data.bytes, first};
  const bool carried = request.data.bytes <= longest_carried && !first;
  if (!channels_.push(request.member, Kind::rendezvous, request.envelope, std::as_bytes(std::span(&note, 1)),
                      carried ? request.data : layout::Data{})) {
    take_back(request);
    return false;
  }
  request.offered.looked_at = looked_at;
  offered_count_ += looked_at;
  (looked_at ? offered_ : listed_).push(request.under_way);
  return true;
}

void Transfers::stop_looking(Request& request) { offered_count_ -= std::exchange(request.offered.looked_at, false); }

// Looks at states first, and then takes the list, but those found by their states go on after those of the list: when a
// receiver stores a state, its earlier answers are in the list already.
bool Transfers::take_answers(Protocols& protocols) {
  std::array<Request*, most_looked_at> found;
  std::size_t count = 0;
  offered_.each<Request>([&](Request& request) {
    if (request.offered.transfer->state.load(std::memory_order_acquire) != State::waiting)  // SYNC: transfer-state
      found[count++] = &request;
  });
  bool any = count != 0;
  auto& answered = mailboxes_.own().answered;
  if (!listed_.empty() && answered.load(std::memory_order_relaxed)) {
    List in_order;
    std::uint64_t at = answered.exchange(0, std::memory_order_acquire);  // SYNC: answered
    while (at) {
      const Transfer& t = of(mailboxes_.me(), at);
      const std::uint64_t offset = std::exchange(at, t.answered_before);
      if (!t.own) {
        retired_.push_back(offset);
        continue;
      }
      Link& link = t.own->under_way;
      link.remove();
      link.insert_before(*in_order.next);
    }
    any |= !in_order.empty();
    in_order.each<Request>([&](Request& request) { take_answer(protocols, request); });
  }
  for (Request* const request : std::span(found.data(), count)) {
    stop_looking(*request);
    take_answer(protocols, *request);
  }
  return any;
}

// The send goes on as its answer says, or ends.
void Transfers::take_answer(Protocols& protocols, Request& request) {
  request.way = request.offered.transfer->state.load(std::memory_order_acquire);  // SYNC: transfer-state
  if (request.way != State::done && request.way != State::cancelled) {
    request.under_way.remove();
    in_progress_.sends.push(request.under_way);
    return begin_send(protocols, request);
  }
  request.cancelled = request.way == State::cancelled;
  if (request.in_buffers()) protocols.chains.recall(request);
  protocols.end_send(request);
}

// ---------------------------------------------------------------- the receiver's side

// pre: what the state publishes is stored.
void Transfers::answer(int member, std::uint64_t transfer, State state) {
  Transfer& t = of(member, transfer);
  t.state.store(state, std::memory_order_release);  // SYNC: transfer-state
  if (t.listed) enlist(member, transfer);
  mailboxes_.wake(member);
}

void Transfers::acknowledge(int member, std::uint64_t transfer, State state) {
  Transfer& t = of(member, transfer);
  const bool listed = t.listed;
  t.state.store(state, std::memory_order_release);  // SYNC: transfer-state
  t.released.store(1, std::memory_order_release);   // SYNC: transfer-released
  if (listed) enlist(member, transfer);
  mailboxes_.wake(member);
}

void Transfers::enlist(int member, std::uint64_t transfer) {
  auto& answered = mailboxes_.of(member).answered;
  std::uint64_t& before = of(member, transfer).answered_before;
  before = answered.load(std::memory_order_relaxed);
  // SYNC: answered
  while (!answered.compare_exchange_weak(before, transfer, std::memory_order_release, std::memory_order_relaxed))
    continue;
}

}  // namespace nearfield::messages
