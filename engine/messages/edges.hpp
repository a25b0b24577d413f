// Collectives in which only the two members of a pair know what they exchange: all-to-all of any lengths, gathering and
// scattering of any lengths, neighbours in a graph. An edge is what one member has for another; it becomes a message.
//
// Nothing is agreed beforehand: each pair finds out for itself what its memory allows (transfers.hpp). Edges are sent
// and received in the order in which they are listed; where partners list each other in fitting orders (rotated ones in
// an all-to-all, engine/orders), each has a partner of its own at each step.
//
//   all sends are short   send each at once; all have left: receive one by one; else post all receives, start the rest
//   else                  post all receives, then start all sends; then wait for all, receives first
//   to overlap            the same, but return before the wait; polls of the messenger progress them
//
// So receives are there before long messages come, and short ones, which need no receive to leave, do not wait for the
// posting of receives. An edge without bytes sends no message, so a message without bytes says that the partner has
// refused.
//
// The messages need a context in which nothing else is sent. Calls of one context follow each other in the same order
// at all members, and every call takes all that was sent for it, so tags only tell the edges of one pair apart: of
// those with the same tag the first sent is the first received. Calls that overlap others have a context of their own,
// in which they are issued in the same order at all members.
#pragma once
#include <cstddef>
#include <exception>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/function_ref.hpp"
#include "engine/memory/temporaries.hpp"
#include "engine/messages/messenger.hpp"

namespace nearfield::messages {

// `members`: rank to member of the messenger. `me`: our rank. `remote`: the partners are the other group of an
// intercommunicator, and `me` is our rank in our own.
struct Partners {
  Messenger& messenger;
  std::span<const int> members;
  int me;
  std::uint64_t context;
  bool remote = false;
  int count() const { return int(members.size()); }
  bool is_us(int partner) const { return partner == me && !remote; }
};

struct Edge {
  int partner;  // a rank, maybe our own
  int tag;
  layout::Data data;
};

// The first error. Of a message that was cut short: its partner, its bytes, and the room for it.
struct EdgeError {
  ErrorKind kind = ErrorKind::none;
  int partner = -1;
  std::uint64_t bytes = 0, room = 0;
  operator ErrorKind() const { return kind; }  // NOLINT: most callers ask for no more
  // Keeps the first error.
  void note(const EdgeError& error) {
    if (kind == ErrorKind::none) *this = error;
  }
};

// Keeps the first death of a partner while a call goes on with the others: they may have matched our messages, and
// would wait for them. It ends once all that live have made the same call, or have revoked the communicator.
class FirstDeath {
 public:
  // Calls body(), which concerns one partner. If that has died, calls end(), which ends what is under way with it.
  template <class Body, class End>
  void outlive(Body body, End end) {
    try {
      body();
    } catch (const team::Died&) {
      if (!death_) death_ = std::current_exception();
      end();
    }
  }
  template <class Body>
  void outlive(Body body) {
    outlive(body, [] {});
  }
  // Throws the death, if there was one.
  void report() const {
    if (death_) std::rethrow_exception(death_);
  }

 private:
  std::exception_ptr death_;
};

class Edges {
 public:
  // pre: what `partners` refers to exists during run(), during each start() and refuse(); the messenger throughout.
  explicit Edges(const Partners& partners) : partners_(partners) {}
  Edges(const Edges&) = delete;

 private:
  // Few edges cost no allocation.
  alignas(std::max_align_t) std::byte room_[1536];
  std::pmr::monotonic_buffer_resource memory_{room_, sizeof room_};

 public:
  std::pmr::vector<Edge> sends{&memory_}, receives{&memory_};
  bool one_way = false;  // a member that sends in this call receives nothing in it, so it could run ahead

  // For a call in place: makes `sends` of a copy of the data that lie in `receives`, for the same partners. pre: there
  // are no sends yet. Throws std::bad_alloc.
  void copy_aside();
  // Allocates what run() or start() needs, since they must not fail after the first message. No edges are added
  // afterwards. Throws std::bad_alloc.
  void prepare(bool to_overlap = false);

  // Runs the exchange. Returns the first error in the order of waiting. pre: prepare() has returned; what is sent and
  // what is received do not overlap. Throws Broken, and then nothing is under way any more.
  EdgeError run();

  // Starts the exchange, which every poll of the messenger progresses. pre: prepare(true).
  void start();
  // Prepares another start. In place, copy_aside() has to be called again. pre: complete().
  void renew();
  // Refuses, instead of a start, as refuse() below does.
  void refuse();
  bool complete() const;
  EdgeError outcome();  // once complete
  void abandon();       // ends what is under way
  bool involves(int member) const;
  // That member has died: ends what is under way with it; the outcome is that error.
  void end_with(int member);

  std::uint64_t bytes_to_all() const;

 private:
  void exchange_with_ourselves();
  bool waits_to_be_met(const Edge& edge) const;
  bool send_at_once();
  void all_later();
  void post(bool attended);
  void wait_to_be_met(Request& request);
  void run_by_requests();
  void run_one_by_one();

  const Partners partners_;
  std::pmr::vector<std::size_t> later_{&memory_};  // sends that could not leave at once
  bool all_short_ = true;                          // all sends
  std::unique_ptr<Request[]> requests_;            // one per edge; nullptr: no overlap, and all sends have left at once
  std::size_t used_ = 0;                           // of these
  EdgeError error_;
  std::optional<memory::Temporary> aside_;
};

// Send or receive a single edge, and note an error in `error`. The short forms are for dense data of at most
// in_record() bytes, which need no request as a rule. Throw Broken.
void send_short(const Partners& partners, const Edge& edge, EdgeError& error);
void receive_short(const Partners& partners, const Edge& edge, EdgeError& error);
void transfer(const Partners& partners, bool sends, const Edge& edge, EdgeError& error);

// For a member that cannot take part for lack of memory: sends messages without bytes, which the others notice, and
// receives and drops theirs. Allocates nothing. `each(sends, visit)` calls visit(partner, tag) for all edges with bytes
// that go out (`sends`) or come in.
using VisitEdge = FunctionRef<void(int partner, int tag)>;
void refuse(const Partners& partners, FunctionRef<void(bool sends, VisitEdge visit)> each);

}  // namespace nearfield::messages
