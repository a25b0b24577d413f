// Answers to messages that stay where they are until they are matched.
//
//   sender                                            receiver
//   offers a Transfer: listed = 0, looks at its       matched: state
//     state in every poll
//   many wait already: listed = 1, looks no more      matched: state, answered_before = answered, answered = this one
//   takes the whole list: answered = 0 <--------------
//
// So a poll looks at few, and costs the same however many wait. Those that are answered go on in the order of their
// answers (sending_), which is that in which the receiver goes on with them.
//
// The list is a stack of which all is taken at once: no entry is put in twice, and none is used again before it was
// taken out.
#include <array>
#include <span>
#include <utility>

#include "engine/messages/protocols.hpp"

namespace nearfield::messages {
namespace {

constexpr unsigned most_looked_at = 16;  // sends whose answers are looked for in every poll

}  // namespace

// ---------------------------------------------------------------- the sender's side

// The record of its Transfer, `with` data of the message or none.
Started Messenger::offer(Request& request, const RemoteLayout& where, Kind kind, const layout::Data& with) {
  if (!request.offered.transfer && !begin_transfer(request, where)) {
    // Those under way give back what they hold.
    if (!sending_.empty() || !offered_.empty() || !listed_.empty() || !retired_.empty()) return Started::no_room;
    request.error = ErrorKind::no_memory;
    complete(request);
    return Started::yes;
  }
  const bool looked_at = offered_count_ < most_looked_at;
  request.offered.transfer->listed = !looked_at;
  const auto note = std::as_bytes(std::span(&request.offered.offset, 1));
  if (!push(request.member, kind, request.envelope, note, with)) return Started::no_room;
  request.offered.looked_at = looked_at;
  offered_count_ += looked_at;
  (looked_at ? offered_ : listed_).push(request.under_way);
  return Started::yes;
}

// It is answered, or given up.
void Messenger::stop_looking(Request& request) { offered_count_ -= std::exchange(request.offered.looked_at, false); }

// Whether any has come. What is looked at is looked at first, and goes behind the others: a receiver that has answered
// it has put into the list before what it has answered before.
bool Messenger::take_answers() {
  std::array<Request*, most_looked_at> found;
  std::size_t count = 0;
  for (Link* link = offered_.next; link != &offered_; link = link->next) {
    auto* const request = static_cast<Request*>(link->owner);
    if (request->offered.transfer->state.load(std::memory_order_acquire) != State::waiting)  // pairs with answer
      found[count++] = request;
  }
  bool any = count != 0;
  if (!listed_.empty() && mine_->answered.load(std::memory_order_relaxed)) {
    Link* first = &sending_;
    std::uint64_t at = mine_->answered.exchange(0, std::memory_order_acquire);  // pairs with enlist
    while (at) {
      const Transfer& t = transfer_of(me_, at);
      at = t.answered_before;
      if (!t.own) continue;
      Link& link = t.own->under_way;
      link.remove();
      link.insert_before(*first);
      first = &link;
    }
    any |= first != &sending_;
    while (first != &sending_) {
      auto& request = *static_cast<Request*>(first->owner);
      first = first->next;
      take_answer(request);
    }
  }
  for (Request* const request : std::span(found.data(), count)) {
    stop_looking(*request);
    request->under_way.remove();
    sending_.push(request->under_way);
    take_answer(*request);
  }
  return any;
}

// It is under way, or ends.
void Messenger::take_answer(Request& request) {
  request.way = request.offered.transfer->state.load(std::memory_order_relaxed);  // seen before
  if (request.way != State::done && request.way != State::cancelled) return begin_send(request);
  request.cancelled = request.way == State::cancelled;
  request.way = State::done;
  end_send(request);
}

// ---------------------------------------------------------------- the receiver's side

// Whatever of the Transfer is told by its state is there.
void Messenger::answer(int member, std::uint64_t transfer, State state) {
  Transfer& t = transfer_of(member, transfer);
  t.state.store(state, std::memory_order_release);  // pairs with take_answers
  if (t.listed) enlist(member, transfer);
  wake(member);
}

// An answer behind which we do not look again: what is not listed may be another message's from then on.
void Messenger::acknowledge(int member, std::uint64_t transfer, State state) {
  Transfer& t = transfer_of(member, transfer);
  const bool listed = t.listed;
  t.state.store(state, std::memory_order_release);  // pairs with take_answers
  t.released.store(1, std::memory_order_release);   // pairs with reclaim
  if (listed) enlist(member, transfer);
  wake(member);
}

void Messenger::enlist(int member, std::uint64_t transfer) {
  auto& answered = box_[std::size_t(member)]->answered;
  std::uint64_t& before = transfer_of(member, transfer).answered_before;
  before = answered.load(std::memory_order_relaxed);
  // pairs with take_answers, for all that are in the list
  while (!answered.compare_exchange_weak(before, transfer, std::memory_order_release, std::memory_order_relaxed))
    continue;
}

// ---------------------------------------------------------------- the row

std::uint64_t Messenger::Protocols::recall_offer(Messenger&, const Request& request) { return request.offered.offset; }

void Messenger::Protocols::refuse_offer(Messenger& m, int member, std::uint64_t transfer) {
  m.acknowledge(member, transfer, State::cancelled);
}

struct Messenger::Protocols::Offer {
  static Cost cost(Messenger&, const Request&) { return Cost::offer; }
  static Started start(Messenger& m, Request& request, RemoteLayout& where) {
    return m.offer(request, where, Kind::transfer, {});
  }
  static void keep(Messenger& m, UnexpectedMessage& message) {
    message.bytes = m.transfer_of(message.member, message.transfer).bytes;
  }
};

const MessageProtocol Messenger::Protocols::offered = {
    .name = "offered",
    .cost = Offer::cost,
    .start = Offer::start,
    .recall = recall_offer,
    .note = sizeof(std::uint64_t),
    .acknowledged = true,
    .deliver = shared<&Messenger::accept>,
    .keep = Offer::keep,
    .refuse = refuse_offer,
};

}  // namespace nearfield::messages
