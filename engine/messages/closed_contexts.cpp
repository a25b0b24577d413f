#include "engine/messages/closed_contexts.hpp"

#include "engine/base/log.hpp"
#include "engine/messages/partitions.hpp"

namespace nearfield::messages {

bool ClosedContexts::close(std::uint64_t context) {
  if (contains(context)) return false;
  contexts_.push_back(context);
  auto& mine = header(mailboxes_.me());
  const std::uint32_t count = mine.closed.load(std::memory_order_relaxed);
  if (count < team::ProcessHeader::most_closed) {
    mine.closed_context[count] = context;
    mine.closed.store(count + 1, std::memory_order_release);             // SYNC: closed-contexts
    header(0).closed_by_anyone.fetch_add(1, std::memory_order_release);  // SYNC: closed-by-anyone
  } else {
    log_line(LogLevel::warn,
             "more than %u contexts were closed; peers that wait in a revoked communicator are not notified",
             team::ProcessHeader::most_closed);
    seen_.store(0, std::memory_order_relaxed);  // our own end all the same
  }
  return true;
}

void ClosedContexts::take_in() {
  // SYNC: closed-by-anyone
  const std::uint32_t closed = header(0).closed_by_anyone.load(std::memory_order_acquire);
  seen_of_.resize(std::size_t(mailboxes_.count()));
  for (int r = 0; r < mailboxes_.count(); ++r) {
    const std::uint32_t count = header(r).closed.load(std::memory_order_acquire);  // SYNC: closed-contexts
    for (std::uint32_t& seen = seen_of_[std::size_t(r)]; seen < count; ++seen)
      if (const std::uint64_t context = header(r).closed_context[seen]; !contains(context))
        contexts_.push_back(context);
  }
  close_partitioned();
  for (const std::uint64_t context : contexts_) end(context);
  seen_.store(closed, std::memory_order_relaxed);
}

void ClosedContexts::end(Request& request) {
  const bool matched = !request.is_send && !request.posted;
  if (matched || request.error != ErrorKind::none) return;
  request.error = ErrorKind::closed;
  if (request.is_send) protocols_.cancel(request);
  else matcher_.cancel(request);
}

void ClosedContexts::end(std::uint64_t context) {
  matcher_.each_posted([&](Request& receive) {
    if (receive.envelope.context == context) end(receive);
  });
  protocols_.each_send([&](Request& send) {
    if (send.envelope.context == context) end(send);
  });
}

void ClosedContexts::close_partitioned() {
  partitioned_.each<Partitioned>([&](Partitioned& pair) {
    const auto closes = [&](std::uint64_t context) { return pair.close_with(context); };
    if (std::ranges::any_of(contexts_, closes) && !contains(pair.context())) contexts_.push_back(pair.context());
  });
}

void ClosedContexts::enter(Link& partitioned) {
  partitioned_.push(partitioned);
  if (!contexts_.empty()) close_partitioned();
}

}  // namespace nearfield::messages
