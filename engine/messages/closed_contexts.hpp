// Contexts that are closed: communicators that a member has revoked, whose waits must end everywhere.
//
//   who closes   appends the context to its own header, `closed` += 1 (release)
//                the first member's closed_by_anyone += 1 (release), wakes everybody
//   the others   see the new number as they progress, read each header's new entries, and end their requests in these
//                contexts
//
// A request that starts later ends at once.
//
// A receive that is not matched ends at once, and so does a send whose record has not left. A send that waits for its
// match is withdrawn, since its receiver may be about to copy; a copy under way runs to its end.
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
  // False: it was closed already. The caller wakes other members, and calls take_in(), which ends our own requests.
  bool close(std::uint64_t context);
  // Returns whether take_in() has anything to do.
  bool any_news() const {
    // SYNC: closed-by-anyone
    return header(0).closed_by_anyone.load(std::memory_order_acquire) != seen_.load(std::memory_order_relaxed);
  }
  void take_in();
  // Ends a new request if its context is closed.
  void end_late(Request& request) {
    if (!contexts_.empty() && !request.complete()) [[unlikely]]
      if (contains(request.envelope.context)) end(request);
  }
  bool contains(std::uint64_t context) const { return std::ranges::find(contexts_, context) != contexts_.end(); }
  // Adds a partitioned message. Its context is closed when PartitionedPair::family is (partitions.hpp).
  void enter(Link& partitioned);

 private:
  void end(std::uint64_t context);
  void end(Request& request);
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
