// Creation of the Messenger, and its functions, which take the lock and call its parts.
#include "engine/messages/messenger.hpp"

#include <algorithm>

#include "engine/base/yield.hpp"

namespace nearfield::messages {

Messenger::Messenger(team::Team& base, bool threaded)
    : mailboxes_(base),
      channels_(mailboxes_, counts_),
      protocols_(lock_, mailboxes_, channels_, continuations_, counts_),
      matcher_(protocols_, counts_),
      closed_(mailboxes_, protocols_, matcher_),
      short_(std::min(protocols_.limits.in_record, channels_.longest_in_ring())) {
  if (threaded) set_threaded();
}

Messenger::~Messenger() {
  if (registered_) process().progress().remove(*this);
}

// Local. Nothing may be missing once the members have agreed. `mailbox`: its offset, 0 where something is missing.
std::unique_ptr<Messenger> Messenger::prepare(team::Team& base, bool threaded, std::uint64_t& mailbox) try {
  std::unique_ptr<Messenger> m(new Messenger(base, threaded));
  // Some transfers from the beginning: whoever has one can always go on, if only through the spare buffer.
  if (base.process().settings().messages && m->protocols_.transfers.add()) mailbox = m->mailboxes_.make_own();
  return m;
} catch (const std::bad_alloc&) {
  return nullptr;
}

Result<std::unique_ptr<Messenger>> Messenger::create(team::Team& base, team::Bootstrap& bootstrap, bool threaded) {
  std::uint64_t mine = 0;
  auto m = prepare(base, threaded, mine);
  auto offsets = team::room_for<std::uint64_t>(base.size());
  if (!bootstrap.allgather(&mine, offsets.data(), sizeof mine)) return Error{"the host's allgather failed"};
  for (const std::uint64_t each : offsets)
    if (!each) return Error{"messages are switched off, or a member has no shared memory for its mailbox"};
  m->mailboxes_.meet(offsets);
  m->process().progress().add(*m);
  m->registered_ = true;
  return m;
}

// ---------------------------------------------------------------- requests

bool Messenger::send_at_once(int member, const Envelope& envelope, const layout::Data& data) {
  Guard guard(lock_);
  return protocols_.send_at_once(member, envelope, data);
}

void Messenger::start_locked(Request& request, Guard& guard) {
  request.reset();
  if (request.is_send) protocols_.start(request, guard);
  else matcher_.start(request, guard);
  closed_.end_late(request);
}

void Messenger::start(Request& request) {
  bool under_way;
  {
    Guard guard(lock_);
    start_locked(request, guard);
    under_way = !request.complete();
  }
  if (under_way) process().progress().wake_background();
}

void Messenger::start_matched(Request& request, UnexpectedMessage& message) {
  bool under_way;
  {
    Guard guard(lock_);
    request.reset();
    matcher_.start_matched(request, message, guard);
    under_way = !request.complete();
  }
  if (under_way) process().progress().wake_background();
}

bool Messenger::leave(Request& request) {
  Guard guard(lock_);
  return protocols_.leave(request, guard);
}

// Other threads may be at work with it: then its receiver goes by what was said when it began.
void Messenger::attend(Request& request) {
  if (request.is_send && !threaded() && request.offered.transfer && !request.complete())
    request.offered.transfer->attended.store(1, std::memory_order_relaxed);
}

void Messenger::cancel(Request& request) {
  const Guard guard(lock_);
  if (request.is_send) protocols_.cancel(request);
  else matcher_.cancel(request);
}

void Messenger::abandon(Request& request, ErrorKind error) {
  Guard guard(lock_);
  for (; request.busy; guard.take()) {  // another thread copies for it
    guard.let_go();
    yield();
  }
  if (request.complete()) return;
  matcher_.abandon(request);
  protocols_.abandon(request);
  request.error = error;
  continuations_.complete(request);
}

void Messenger::take_out(FunctionRef<Request*()> choose) {
  const Guard guard(lock_);
  matcher_.take_out(choose);
}

bool Messenger::probe(const Envelope& wanted, bool take, Found& found) {
  Guard guard(lock_);
  matcher_.decide();
  UnexpectedMessage* message = matcher_.find(wanted, take);
  if (!message && poll_locked(guard)) message = matcher_.find(wanted, take);
  if (!message) return false;
  found = {message->envelope, message->note.bytes, take ? message : nullptr};
  return true;
}

std::optional<Messenger::Lost> Messenger::oldest_unexpected() {
  const Guard guard(lock_, std::try_to_lock);
  const UnexpectedMessage* const oldest = guard.owns() ? matcher_.oldest() : nullptr;
  if (!oldest) return std::nullopt;
  return Lost{oldest->member, oldest->envelope};
}

bool Messenger::sends_pending() {
  const Guard guard(lock_);
  bool pending = false;
  protocols_.each_send([&](const Request& send) {
    const int member = send.member;
    pending |= member == mailboxes_.me() || !(mailboxes_.peer(member).left() || mailboxes_.peer(member).gone());
  });
  return pending;
}

// ---------------------------------------------------------------- continuations

void Messenger::forget(Follower& follower) {
  const Guard guard(lock_);
  continuations_.forget(follower);
}

void Messenger::stall(Stalled& stalled, FunctionRef<void()> note) {
  {
    const Guard guard(lock_);
    note();
    continuations_.stall(stalled);
  }
  process().progress().wake_background();
}

void Messenger::unstall(Stalled& stalled) {
  const Guard guard(lock_);
  continuations_.unstall(stalled);
}

// ---------------------------------------------------------------- closed contexts

void Messenger::close(std::uint64_t context) {
  {
    const Guard guard(lock_);
    if (!closed_.close(context)) return;
  }
  look_for_closed();
  for (int r = 0; r < members(); ++r)
    if (r != mailboxes_.me()) mailboxes_.wake(r);
}

bool Messenger::look_for_closed() {
  if (!closed_.any_news()) [[likely]]
    return false;
  const Guard guard(lock_, std::try_to_lock);
  if (guard.owns()) closed_.take_in();
  return guard.owns();
}

bool Messenger::is_closed(std::uint64_t context) {
  const Guard guard(lock_);
  return closed_.contains(context);
}

void Messenger::enter(Link& partitioned) {
  const Guard guard(lock_);
  closed_.enter(partitioned);
}

void Messenger::leave(Link& partitioned) {
  const Guard guard(lock_);
  partitioned.remove();
}

}  // namespace nearfield::messages
