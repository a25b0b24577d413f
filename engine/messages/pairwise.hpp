// All-to-all of lengths that differ by pair, as messages between all pairs.
//
// What two members exchange is known to them alone, so nothing is agreed beforehand: each pair finds out for itself
// what its memory allows (transfer.cpp). Both sides follow the rotated order (engine/orders), in which every member
// has a partner of its own at each step:
//
//   all sends are short   send each at once, as a rule; then post all receives; then start the sends that had no room
//   else                  post all receives, then start all sends; then wait for all, receives first
//
// So receives are there before long messages come, and short ones, which need no receive to leave, do not wait for the
// posting of receives. A pair that exchanges nothing in one direction sends no message in it: nothing where something
// was expected says that the partner has refused.
//
// The messages need a context in which nothing else is sent. Calls of one context follow each other in the same order
// at all members, and every call takes all that was sent for it, so one tag serves them all.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/function_ref.hpp"
#include "engine/memory/temporaries.hpp"
#include "engine/messages/messenger.hpp"

namespace nearfield::messages {

// Who exchanges: rank to member of the messenger, and the rank that we are.
struct Partners {
  Messenger& messenger;
  std::span<const int> members;
  int me;
  std::uint64_t context;
  int count() const { return int(members.size()); }
};

class Pairwise {
 public:
  // pre: what `partners` refers to outlives the exchange. Throws std::bad_alloc.
  explicit Pairwise(const Partners& partners);

  // What goes to and what comes from a partner, ourselves among them; nothing unless it is filled in.
  layout::Data& to(int partner) { return parts_[2 * std::size_t(partner)]; }
  layout::Data& from(int partner) { return parts_[2 * std::size_t(partner) + 1]; }

  // In place: what is sent lies where the same partner's part will be received, and goes by way of a copy.
  // pre: from() is filled in for all. Throws std::bad_alloc.
  void copy_aside();
  // Takes what run() needs of memory: from the first message on nothing may be missing. Throws std::bad_alloc.
  void prepare();

  // The exchange; what went wrong first, in the order of waiting. A message longer than its part is cut short.
  // pre: prepare() has returned; to and from do not overlap. Throws Broken, and then nothing is under way any more.
  Trouble run();

  std::uint64_t bytes_to_all();

 private:
  void exchange_with_ourselves(Trouble& trouble);
  bool send_at_once();
  void run_by_requests(Trouble& trouble);
  void run_one_by_one(Trouble& trouble);

  const Partners partners_;
  std::vector<layout::Data> parts_;      // to and from each
  std::vector<int> later_;               // whom we could not send to at once, in order
  std::unique_ptr<Request[]> requests_;  // two per partner, unless all sends are short
  std::optional<memory::Temporary> aside_;
};

// For a member that cannot take part, without memory: the others get nothing from it, which they notice, and what they
// send to it is let in and dropped. Needs no memory itself. `sends`, `receives`: whether there is anything to or from
// that partner.
void refuse(const Partners& partners, FunctionRef<bool(int)> sends, FunctionRef<bool(int)> receives);

}  // namespace nearfield::messages
