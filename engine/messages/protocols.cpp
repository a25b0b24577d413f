// Requests from their start by a row to their end.
#include "engine/messages/protocols.hpp"

#include <algorithm>

namespace nearfield::messages {

Protocols::Protocols(const MessengerLock& lock, Mailboxes& mailboxes, Channels& channels, Continuations& continuations,
                     Counts& counts)
    : mailboxes(mailboxes),
      channels(channels),
      continuations(continuations),
      memory(mailboxes),
      chains(mailboxes, channels, in_progress, counts),
      transfers(mailboxes, channels, memory, in_progress, continuations, counts),
      limits(messages::limits(mailboxes.process().settings(), mailboxes.process().policy().oversubscribed,
                              mailboxes.process().machine().own)),
      lock_(lock),
      waiting_(std::size_t(mailboxes.count())) {}

// ---------------------------------------------------------------- sends

bool Protocols::send_at_once(int member, const Envelope& envelope, const layout::Data& data) {
  // What waits for room goes first.
  if (waiting_for_room_ && !waiting_[std::size_t(member)].empty()) [[unlikely]]
    return false;
  // Under the lock, so other threads should not have to wait for long.
  constexpr std::uint64_t among_threads = 16 << 10;
  if (data.bytes > limits.in_record && member != mailboxes.me() &&
      data.bytes <= std::min(limits.copied_always, lock_.program_threads() ? among_threads : chains.longest_buffer()) &&
      chains.send_at_once(member, envelope, data))
    return true;
  return data.bytes <= channels.longest_eager(member) && channels.push(member, Kind::eager, envelope, {}, data);
}

// By the protocol that costs least and can take it. False while there is no room for its record.
bool Protocols::dispatch(Request& send) {
  RemoteLayout where{};
  if (send.offered.transfer) return send.protocol->start(*this, send, where) == Started::yes;
  for (Cost cost{}; cost != Cost::never; cost = Cost(int(cost) + 1))
    for (const MessageProtocol* const each : Rows::all) {
      if (!each->cost || each->cost(*this, send) != cost) continue;
      send.protocol = each;
      const Started started = each->start(*this, send, where);
      if (started != Started::no) return started == Started::yes;
    }
  return false;
}

void Protocols::start(Request& send, Guard& guard) {
  List& waiting = waiting_[std::size_t(send.member)];
  if (!waiting.empty() || !dispatch(send)) {
    send.waits = true;
    waiting.push(send.under_way);
    ++waiting_for_room_;
    mailboxes.wake_blocked(send.member);
  } else if (send.in_buffers() && !send.complete()) {
    chains.send(send, guard);
    if (send.way == State::done) end_send(send);
  }
}

void Protocols::flush_waiting() {
  for (std::size_t member = 0; member < waiting_.size(); ++member) {
    List& waiting = waiting_[member];
    while (!waiting.empty()) {
      Request& request = *static_cast<Request*>(waiting.next->owner);
      request.under_way.remove();  // dispatch links it elsewhere, or it is complete and no longer ours
      request.waits = false;
      if (!dispatch(request)) {
        request.waits = true;
        request.under_way.insert_before(*waiting.next);
        mailboxes.wake_blocked(int(member));
        break;
      }
      --waiting_for_room_;
    }
  }
}

bool Protocols::cancel(Request& send) {
  if (send.complete() || !send.under_way.linked() || send.busy) return true;
  if (send.waits) {  // nobody has heard of it yet
    send.under_way.remove();
    --waiting_for_room_;
    if (send.offered.transfer) transfers.take_back(send);
    send.cancelled = true;
    continuations.complete(send);
    return true;
  }
  // Only the receiver knows whether it is matched. Without room for the question the message is sent as usual.
  const auto recall = send.protocol->recall;
  const std::uint64_t what = recall ? recall(send) : 0;
  if (!what) return true;
  if (!waiting_[std::size_t(send.member)].empty() ||
      !channels.push(send.member, Kind::withdraw, send.envelope, std::as_bytes(std::span(&what, 1)), {}))
    return false;
  send.withdrawn = true;
  mailboxes.wake_blocked(send.member);
  return true;
}

bool Protocols::leave(Request& send, Guard& guard) {
  if (send.complete()) return true;
  const InBuffers* const part = send.offered.transfer || send.busy ? nullptr : send.in_buffers();
  if (!part || part->chain.position < send.data.bytes) return false;
  send.mode = Mode::standard;
  if (chains.send(send, guard)) end_send(send);
  return send.complete();
}

void Protocols::end_send(Request& request) {
  request.under_way.remove();
  chains.end(request);
  if (request.offered.transfer) transfers.retire(request);
  continuations.complete(request);
}

// ---------------------------------------------------------------- receives

// What is there already is read at once.
void Protocols::read_what_is_there(Request& receive, Guard& guard) {
  if (!receive.under_way.linked() || receive.way != State::staged) return;
  receive.protocol->receive(*this, receive, guard);
  if (receive.way == State::done) end_receive(receive);
}

void Protocols::end_receive(Request& request) {
  request.under_way.remove();
  if (request.offered.transfer) transfers.release(request);
  mailboxes.wake(request.member);
  continuations.complete(request);
}

// ---------------------------------------------------------------- both

bool Protocols::go_on(Guard& guard, bool all) {
  if (waiting_for_room_) flush_waiting();
  bool progress = transfers.take_answers(*this);
  progress |= in_progress.receives.go_on(
      all, [&](Request& request) { return request.protocol->receive(*this, request, guard); },
      [&](Request& request) { end_receive(request); });
  progress |= in_progress.sends.go_on(
      all, [&](Request& request) { return request.protocol->send(*this, request, guard); },
      [&](Request& request) { end_send(request); });
  if (transfers.any_retired()) transfers.reclaim();
  return progress;
}

void Protocols::abandon(Request& request) {
  if (request.under_way.linked()) {
    waiting_for_room_ -= request.waits;
    request.under_way.remove();
    transfers.stop_looking(request);
    if (request.is_send) chains.end(request);
    if (request.is_send && request.offered.transfer) transfers.give_up(request);
    if (!request.is_send) transfers.forget(request);
  }
  mailboxes.process().reach().in_flight_buffers.put_back(request.offered.slot);
  request.part = {};
}

}  // namespace nearfield::messages
