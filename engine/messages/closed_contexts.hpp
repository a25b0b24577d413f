// Contexts that are closed: communicators that a member has revoked, whose waits must end everywhere.
//
//   who closes   appends the context to its own header, `closed` += 1 (release)
//                the first member's closed_by_anyone += 1 (release), wakes everybody
//   the others   see another number there as they progress, read what each header has more than before, and end their
//                requests of that context
//
// A request that starts later ends as it starts: whoever starts it may not have known yet.
//
// A receive that is not matched ends at once, and so does a send that nobody has heard of. A send that waits for its
// match is withdrawn, since its receiver may be about to copy; what is being copied is copied to its end.
//
// Threads: any_news() by any thread; everything else needs the messenger's lock.
#pragma once
#include <algorithm>
#include <atomic>
#include <vector>

#include "engine/messages/matcher.hpp"

namespace nearfield::messages {

class ClosedContexts {
 public:
  ClosedContexts(Mailboxes& mailboxes, Protocols& protocols, Matcher& matcher)
      : mailboxes_(mailboxes), protocols_(protocols), matcher_(matcher) {}
  // False: it is closed already. Others know, but may have to be woken; our requests of it end by take_in().
  bool close(std::uint64_t context);
  // One load where there are none.
  bool any_news() const {
    // SYNC: closed-by-anyone
    return header(0).closed_by_anyone.load(std::memory_order_acquire) != seen_.load(std::memory_order_relaxed);
  }
  void take_in();
  // A request that has just been started.
  void end_late(Request& request) {
    if (!contexts_.empty() && !request.complete()) [[unlikely]]
      if (contains(request.envelope.context) && !end(request)) seen_.store(0, std::memory_order_relaxed);
  }
  bool contains(std::uint64_t context) const { return std::ranges::find(contexts_, context) != contexts_.end(); }
  // Partitioned messages have a context of their own, which is closed with that of their family (partitions.hpp).
  void enter(Link& partitioned);

 private:
  bool end(std::uint64_t context);
  bool end(Request& request);
  void close_partitioned();
  team::ProcessHeader& header(int member) const { return mailboxes_.at<team::ProcessHeader>(member, 0); }
  Mailboxes& mailboxes_;
  Protocols& protocols_;
  Matcher& matcher_;
  std::vector<std::uint64_t> contexts_;
  std::vector<std::uint32_t> seen_of_;  // per member, of its ProcessHeader::closed
  std::atomic<std::uint32_t> seen_{0};  // of closed_by_anyone
  List partitioned_;
};

}  // namespace nearfield::messages
