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

bool Protocols::send_eagerly(Request& send) {
  if (!channels.push(send.member, Kind::eager, send.envelope, {}, send.data)) return false;
  continuations.complete(send);
  return true;
}

// Whether copy buffers are better than a single copy; `where`: where the data lies, if that had to be looked at. The
// sender of a message may compute as soon as its call has returned, so a message that its receiver can reach or read by
// calls goes through copy buffers only where they take all of it at once, or where its call does not return before.
bool Protocols::goes_by_buffers(const Request& send, RemoteLayout& where) {
  const std::uint64_t bytes = send.data.bytes;
  if (send.member == mailboxes.me()) return false;
  const bool whole = send.attended || bytes <= chains.longest_whole();
  if (whole && (bytes <= limits.copied_always || transfers.skips_offer(send))) return true;
  try {
    where = memory.describe(send.member, send.data);
  } catch (const std::bad_alloc&) {  // nobody reaches it
    return true;
  }
  if (mailboxes.process().settings().protocol == Protocol::cma || where.place.reachable()) return false;
  // Calls of the kernel may be better, where the receiver would try them.
  return !(memory.calls(send.member) && send.data.dense()) || (whole && !transfers.tries_ways());
}

// False while there is no buffer for it, or no room for its record.
bool Protocols::begin_in_buffers(Request& send, Guard& guard) {
  if (!chains.begin(send)) return false;
  const std::uint64_t bytes = send.data.bytes, first = send.in_buffers()->chain.first;
  if (send.mode == Mode::synchronous || !chains.holds_whole(send)) {
    if (transfers.offer(send, {}, first)) {
      chains.fill(send, guard);
      return true;
    }
  } else if (const Note note{0, bytes, first};
             channels.push(send.member, Kind::rendezvous, send.envelope, std::as_bytes(std::span(&note, 1)), {})) {
    in_progress.sends.push(send.under_way);
    chains.fill(send, guard);
    if (send.in_buffers()->chain.at_end()) end_send(send);
    return true;
  }
  chains.take_back(send);
  return false;
}

// The cheapest way that can take it. False while there is no room for its record.
bool Protocols::dispatch(Request& send, Guard& guard) {
  const std::uint64_t bytes = send.data.bytes;
  const bool fits_record = send.mode == Mode::standard && bytes <= channels.longest_eager(send.member);
  RemoteLayout where{};
  if (fits_record && bytes <= limits.in_record) return send_eagerly(send);
  const bool with_note = send.mode == Mode::synchronous && bytes <= Transfers::longest_carried;
  if (!with_note && goes_by_buffers(send, where) && begin_in_buffers(send, guard)) return true;
  if (fits_record) return send_eagerly(send);
  return transfers.offer(send, where);
}

void Protocols::start(Request& send, Guard& guard) {
  List& waiting = waiting_[std::size_t(send.member)];
  if (!waiting.empty() || !dispatch(send, guard)) {
    send.waits = true;
    waiting.push(send.under_way);
    ++waiting_for_room_;
    mailboxes.wake_blocked(send.member);
  }
}

void Protocols::flush_waiting(Guard& guard) {
  for (std::size_t member = 0; member < waiting_.size(); ++member) {
    List& waiting = waiting_[member];
    while (!waiting.empty()) {
      Request& request = *static_cast<Request*>(waiting.next->owner);
      request.under_way.remove();  // dispatch links it elsewhere, or it is complete and no longer ours
      request.waits = false;
      if (!dispatch(request, guard)) {
        request.waits = true;
        request.under_way.insert_before(*waiting.next);
        mailboxes.wake_blocked(int(member));
        break;
      }
      --waiting_for_room_;
    }
  }
}

void Protocols::cancel(Request& send) {
  send.to_cancel = !try_to_cancel(send);
  cancels_due_ |= send.to_cancel;
}

bool Protocols::try_to_cancel(Request& send) {
  if (send.complete() || !send.under_way.linked()) return true;
  if (send.busy) return false;
  if (send.waits) {  // nobody has heard of it yet
    send.under_way.remove();
    --waiting_for_room_;
    send.cancelled = true;
    continuations.complete(send);
    return true;
  }
  // Only the receiver knows whether it is matched. Without room for the question the message is sent as usual.
  const std::uint64_t what = send.offered.offset;
  if (!send.offered.transfer || send.way != State::waiting || send.withdrawn) return true;
  if (!waiting_[std::size_t(send.member)].empty() ||
      !channels.push(send.member, Kind::withdraw, send.envelope, std::as_bytes(std::span(&what, 1)), {}))
    return false;
  send.withdrawn = true;
  mailboxes.wake_blocked(send.member);
  return true;
}

bool Protocols::leave(Request& send, Guard& guard) {
  if (send.complete()) return true;
  if (send.busy || send.waits || send.withdrawn || !send.in_buffers()) return false;
  chains.fill(send, guard);
  if (!send.in_buffers()->chain.at_end()) return false;
  abandon(send);
  continuations.complete(send);
  return true;
}

void Protocols::end_send(Request& request) {
  request.under_way.remove();
  chains.end(request);
  if (request.offered.transfer) transfers.retire(request);
  continuations.complete(request);
}

// ---------------------------------------------------------------- receives

void Protocols::give(Request& receive, const Arrived& message) {
  const Note& note = message.note;
  receive.member = message.member;
  receive.envelope = message.envelope;
  receive.received = std::min(note.bytes, receive.data.bytes);
  receive.total = note.bytes;
  if (note.bytes > receive.data.bytes) receive.error = ErrorKind::truncated;
  if (message.carried()) {
    if (note.transfer) transfers.acknowledge(message.member, note.transfer, State::done);
    layout::scatter(receive.data, 0, message.payload, receive.received);
    return continuations.complete(receive);
  }
  receive.under_way.owner = &receive;
  if (note.transfer) transfers.accept(*this, receive, note);
  else chains.accept(receive, note.first, note.bytes);
}

// What is there already is read at once.
void Protocols::read_what_is_there(Request& receive, Guard& guard) {
  if (!receive.under_way.linked() || receive.way != State::staged) return;
  chains.drain(receive, guard);
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
  if (waiting_for_room_) flush_waiting(guard);
  if (std::exchange(cancels_due_, false)) [[unlikely]]
    each_send([&](Request& send) {
      if (send.to_cancel) cancel(send);
    });
  bool progress = transfers.take_answers(*this);
  progress |= in_progress.receives.go_on(
      all,
      [&](Request& request) {
        return request.in_blocks() ? transfers.receive_blocks(*this, request, guard) : chains.drain(request, guard);
      },
      [&](Request& request) { end_receive(request); });
  progress |= in_progress.sends.go_on(
      all,
      [&](Request& request) {
        if (request.in_blocks()) return transfers.send_blocks(*this, request, guard);
        const bool filled = chains.fill(request, guard);
        if (request.in_buffers()->chain.at_end()) request.way = State::done;
        return filled || request.way == State::done;
      },
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
