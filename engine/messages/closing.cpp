// Contexts that are closed: communicators that a member has revoked, whose waits must end everywhere.
//
//   who closes   appends the context to its own header, `closed` += 1 (release)
//                the first member's closed_by_anyone += 1 (release), wakes everybody
//   the others   see another number there as they progress, read what each header has more than before, and end their
//                requests of that context
//
// A receive that is not matched ends at once, and so does a send that nobody has heard of. A send that waits for its
// match is withdrawn, since its receiver may be about to copy; what is being copied is copied to its end.
#include <algorithm>

#include "engine/messages/guard.hpp"
#include "engine/messages/partitions.hpp"

namespace nearfield::messages {
namespace {

bool knows(const std::vector<std::uint64_t>& contexts, std::uint64_t context) {
  return std::ranges::find(contexts, context) != contexts.end();
}

}  // namespace

void Messenger::close(std::uint64_t context) {
  {
    Guard guard(*this);
    if (knows(closed_, context)) return;
    closed_.push_back(context);
    auto& mine = header(me_);
    const std::uint32_t count = mine.closed.load(std::memory_order_relaxed);
    if (count < team::ProcessHeader::most_closed) {
      mine.closed_context[count] = context;
      mine.closed.store(count + 1, std::memory_order_release);             // pairs with look_for_closed
      header(0).closed_by_anyone.fetch_add(1, std::memory_order_release);  // pairs with look_for_closed
    } else {
      log_line(LogLevel::warn, "more than %u communicators were revoked; peers that wait in this one are not told",
               team::ProcessHeader::most_closed);
    }
  }
  look_for_closed();
  for (int r = 0; r < members_; ++r)
    if (r != me_) wake(r);
}

bool Messenger::look_for_closed() {
  const std::uint32_t told = header(0).closed_by_anyone.load(std::memory_order_acquire);
  if (told == closed_by_anyone_.load(std::memory_order_relaxed)) [[likely]]
    return false;
  Guard guard(*this, std::try_to_lock);
  if (!guard.owns()) return false;
  closed_seen_.resize(std::size_t(members_));
  for (int r = 0; r < members_; ++r) {
    const std::uint32_t count = header(r).closed.load(std::memory_order_acquire);
    for (std::uint32_t& seen = closed_seen_[std::size_t(r)]; seen < count; ++seen)
      if (const std::uint64_t context = header(r).closed_context[seen]; !knows(closed_, context))
        closed_.push_back(context);
  }
  bool ended = true;
  for (const std::uint64_t context : closed_) ended &= end_context(context);
  if (ended) closed_by_anyone_.store(told, std::memory_order_relaxed);
  return true;
}

bool Messenger::is_closed(std::uint64_t context) {
  Guard guard(*this);
  return knows(closed_, context);
}

void Messenger::enter(Link& partitioned) {
  const Guard guard(*this);
  partitioned_.push(partitioned);
}

void Messenger::leave(Link& partitioned) {
  const Guard guard(*this);
  partitioned.remove();
}

// Whether all has been done; a withdrawal may find no room.
bool Messenger::end_context(std::uint64_t context) {
  auto is_in = [context](const Entry& entry) { return entry.envelope.context == context; };
  bool ended = true;
  auto end = [&](Request& request) {
    request.error = ErrorKind::closed;
    if (cancel_locked(request)) return;
    request.error = ErrorKind::none;
    ended = false;
  };
  posted_.each([&](Entry& receive) {
    if (is_in(receive)) end(static_cast<Request&>(receive));
  });
  auto end_sends = [&](const List& list) {
    for (Link* link = list.next; link != &list;) {
      auto* const request = static_cast<Request*>(link->owner);
      link = link->next;  // before it is taken out
      if (request && is_in(*request) && request->error == ErrorKind::none) end(*request);
    }
  };
  for (Out& out : out_) end_sends(out.waiting);
  end_sends(offered_);
  end_sends(listed_);
  end_sends(sending_);
  for (Link* link = partitioned_.next; link != &partitioned_; link = link->next) {
    auto& pair = *static_cast<Partitioned*>(link->owner);
    if (pair.close_with(context)) ended &= end_context(pair.context());
  }
  return ended;
}

}  // namespace nearfield::messages
