// Point to point between the processes of a node: matching, fastboxes, large transfers, progress.
//
// One Messenger per process, made with the team of all processes that the program started on this node. It knows
// members of that team; communicators are contexts, numbers equal on all their ranks and different for each.
//
// Threads: one lock covers matching and all lists; it is let go while the bytes of large messages are copied, and not
// taken at all as long as the program has promised that only one thread calls (Guard).
#pragma once
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/function_ref.hpp"
#include "engine/copying/handover.hpp"
#include "engine/messages/fastbox.hpp"
#include "engine/messages/request.hpp"
#include "engine/messages/ways.hpp"
#include "engine/team/team.hpp"
#include "engine/waiting/progress.hpp"

namespace nearfield::messages {

using reach::Peer;

struct Partitions;

// protocols.hpp
struct Arrived;
struct MessageProtocol;
enum class Started : std::uint8_t {
  no,       // this protocol cannot take the message
  no_room,  // it can, later: the message waits
  yes,
};
// How willingly a message is sent by a protocol.
enum class Cost : std::uint8_t { record, buffers, long_record, offer, never };

struct Counts {
  std::uint64_t cells = 0, fastbox = 0, direct = 0, by_calls = 0, staged = 0;  // messages sent (large ones: received)
  std::uint64_t unexpected = 0, bytes = 0;
  std::uint64_t fastboxes = 0;  // that were made
};

class Messenger final : public waiting::Source {
 public:
  // Collective over the team. An Error on all members alike.
  static Result<std::unique_ptr<Messenger>> create(team::Team& base, team::Bootstrap& bootstrap, bool threaded);
  ~Messenger();

  team::Process& process() { return process_; }
  int members() const { return members_; }

  // ---- sends. `member` is the destination in the base team, envelope.source our rank in the communicator.
  // True when the message is on its way and nothing of `data` is needed any more.
  bool send_at_once(int member, const Envelope& envelope, const layout::Data& data);
  // Bytes up to which a message travels with its record, and takes no copy buffer.
  std::uint64_t in_record() const { return in_record_; }
  void start(Request& request);  // a send or a receive with its fields filled in; completes later
  void forget(Follower& follower);
  // Under the lock: `note()`, and then it is asked in every poll.
  void stall(Stalled& stalled, FunctionRef<void()> note);
  void unstall(Stalled& stalled);
  // If it sleeps in a wait for messages it looks again.
  void ring(int member) { wake(member); }
  void wake_ourselves() { wake(me_); }
  std::byte* base(int member) const { return base_[std::size_t(member)]; }
  // Receives that look into memory of their senders: while there are any, naps are short.
  void count_watchers(int more) { watchers_.fetch_add(more, std::memory_order_relaxed); }
  // partitions.hpp: a board in our segment, zeroed, 0: there is no room. It goes back when the receiver is through with
  // so many starts.
  std::uint64_t new_board(const Partitions& partitions);
  void retire_board(std::uint64_t board, std::uint64_t starts);
  void wait(Request& request);
  // A synchronous send that lies in copy buffers as a whole need not be met any more; false: it is not there yet.
  bool leave(Request& request);
  // The caller does not leave its call before that send is complete.
  void attend(Request& request);

  // A receive that is matched already.
  void start_matched(Request& request, UnexpectedMessage& message);

  // ---- probes
  struct Found {
    Envelope envelope;
    std::uint64_t bytes;
    UnexpectedMessage* message;  // only if it was taken out
  };
  // The oldest message that would match; `take`: takes it out of matching.
  bool probe(const Envelope& wanted, bool take, Found& found);

  // The oldest message that has come and that nothing receives; none also where another thread is at work.
  struct Lost {
    int member;
    Envelope envelope;
  };
  std::optional<Lost> oldest_unexpected();

  // Receives that are not matched yet complete as cancelled; sends when the receiver agrees.
  void cancel(Request& request);
  // `choose()` says which of the posted receives is met elsewhere, nullptr: none; nothing is matched meanwhile. That
  // one is out of matching then, and never completes here. It may set Request::elsewhere of posted ones.
  void take_out(FunctionRef<Request*()> choose);
  // Takes the request out of everything after a wait for it has thrown.
  void abandon(Request& request);

  // ---- progress
  bool poll() override;  // whatever can be done now; whether anything was
  // ---- while the rank is elsewhere, and another thread stands in for it (stand_in.hpp)
  void lend();       // from now on all take the lock, and peers that are blocked on us may ring summons()
  void take_back();  // returns when the stand-in is through with its step
  // One step of the stand-in, under the lock throughout, unless `back()` says that the rank is back. Where nothing is
  // left to do, peers may ring again.
  enum class Did { moved, waits, nothing_to_do };
  Did stand_in(FunctionRef<bool()> back);
  Atomic<std::uint32_t>& blocked_wake_word() { return mine_->blocked_wake_word; }  // futex word of the stand-in
  // ---- while the rank computes, and another thread helps (helper.hpp). pre: threaded()
  bool help();  // as poll()
  // Between these two whoever sends to us rings the word.
  Atomic<std::uint32_t>& begin_nap();
  void end_nap();
  // Until `done()`. `awaited(member)`: whether that member's death ends the wait. `also()` is called beside polls.
  void wait_until(FunctionRef<bool()> done, FunctionRef<bool(int)> awaited, FunctionRef<void()> also,
                  const char* doing);
  // Whether something of ours needs us to poll.
  bool busy() override;
  void asleep_on(Atomic<std::uint32_t>* word) override;
  // Whether a member that is still there has not got all that was sent to it.
  bool sends_pending();

  // Runs of a layout where peers can read them.
  layout::View share(layout::Builder& builder, std::int64_t extent, std::shared_ptr<const void>& keep);

  // partitions.hpp: those that are closed with a context of another name
  void enter(Link& partitioned);
  void leave(Link& partitioned);

  // closing.cpp: a context in which nothing is sent or matched any more, here and at all members (a communicator that
  // was revoked). Requests in it end by ErrorKind::closed.
  void close(std::uint64_t context);
  // Takes in what others have closed; whether there was anything. One load where there is nothing.
  bool look_for_closed();
  bool is_closed(std::uint64_t context);

  const Counts& counts() const { return counts_; }
  // The program's threads call at the same time, from now on.
  void set_threaded() {
    program_threads_.store(true, std::memory_order_relaxed);
    threaded_.store(true, std::memory_order_relaxed);
  }
  bool threaded() const { return threaded_.load(std::memory_order_relaxed); }

 private:
  explicit Messenger(team::Team& base);
  bool busy_locked() const {
    return !sending_.empty() || !offered_.empty() || !listed_.empty() || !receiving_.empty() || waiting_for_room_ ||
           posted_.size() || due_ || !stalled_.empty() || watchers_.load(std::memory_order_relaxed) > 0;
  }
  static std::unique_ptr<Messenger> prepare(team::Team& base, bool threaded);
  struct Guard;
  struct Protocols;
  friend struct MessageProtocol;
  struct AmongWaiters;
  struct Out {
    FastboxWriter box;
    std::uint32_t talked = 0;
    bool without_box = false;  // there was no memory for one
    List waiting;              // sends that wait for room, in order
    Offers offers;
    copying::Handover handover;
    struct {
      bool pending = false;
      std::uint8_t kind = 0;
      std::uint32_t number = 0;  // of samples so far
      std::uint64_t bytes = 0, ticks = 0;
    } sample;  // of the handover, until the receiver tells its part
  };
  struct In {
    FastboxReader box;
    std::uint64_t waiting = 0;    // bytes of unexpected messages that lie in buffers of the sender
    std::uint32_t came = 0;       // in which poll the last message did
    std::uint32_t undecided = 0;  // of its unexpected messages
    std::uint32_t straight = 0;   // receives that have looked into its ring before they were posted
    bool held = false;            // decide(): nothing of it goes on
    Ways ways;
  };
  struct SleepHost;

  std::uint64_t eager_limit(const Out& out) const;
  bool push(int member, Kind kind, const Envelope& envelope, std::span<const std::byte> note, const layout::Data& data);
  bool make_fastbox(int member);
  void send_cell(int member, Cell& cell, Kind kind, std::size_t payload);
  Cell* free_cell();
  bool dispatch(Request& request);
  // Of an unexpected message that its sender may take back.
  static Envelope name_of(int member, std::uint64_t transfer) { return {transfer, member, 0}; }
  void withdraw(int member, std::uint64_t transfer);
  bool cancel_locked(Request& request);  // false: it must be tried again, since there was no room for the question
  bool end_context(std::uint64_t context);
  team::ProcessHeader& header(int member) const { return *reinterpret_cast<team::ProcessHeader*>(base_[member]); }
  bool poll_locked(Guard& guard);
  bool poll_silent(bool all);
  bool go_on(Guard& guard, bool all);
  template <class Pump, class End>
  bool go_on_with(InTurn& list, bool all, Pump pump, End end);
  bool poll_box(int member);
  bool poll_queue();
  void flush_waiting();
  bool deliver(int member, std::uint64_t word, const Record& record);
  UnexpectedMessage* new_unexpected();  // nullptr without memory
  void free_unexpected(UnexpectedMessage& unexpected);
  UnexpectedMessage* keep_unexpected(int member, Kind kind, const Envelope& envelope, std::uint64_t bytes,
                                     const Handed& told,
                                     const std::byte* payload);  // nullptr without memory
  bool copy_out(UnexpectedMessage& message);
  static const std::byte* read_note(Kind kind, const Record& record, Handed& told, std::uint64_t& bytes);
  void give(Request& request, Kind kind, const Arrived& message);
  static Arrived arrived(UnexpectedMessage& message);
  bool receive_next(Request& request, Guard& guard);
  void read_what_is_there(Request& request, Guard& guard);
  void consume_now(UnexpectedMessage& message, Request& request, Guard& guard);
  void consume(UnexpectedMessage& message, Request& request);
  void complete(Request& request);
  void start_locked(Request& request, Guard& guard);
  void follow(Guard& guard);
  void wake(int member);
  void wake_blocked(int member);

  // elsewhere.cpp
  struct Meeting {
    Request* receive;  // out of matching; nullptr: none
    bool undecided;    // not known yet
  };
  // The receive for a message. `asked`: the message's tokens, none afterwards where it is decided.
  Meeting meet(const Envelope& message, Tokens*& asked) {
    auto* const first = static_cast<Request*>(posted_.first(message));
    if ((first && first->elsewhere) || asked) [[unlikely]]
      return meet_elsewhere(message, asked);
    if (first) take(*first);
    return {first, false};
  }
  Meeting meet_elsewhere(const Envelope& message, Tokens*& asked);
  void take(Request& receive) {
    posted_.remove(receive);
    receive.posted = false;
  }
  void note_undecided(UnexpectedMessage& message, Tokens* asked);
  void settle(UnexpectedMessage& message);
  void decide(Guard& guard);
  void take_in_undecided();
  void take_in(UnexpectedMessage& message);
  void taken_in(Request& request);
  void inherit(UnexpectedMessage& message, Request& request);
  void disinherit(const Request& request);

  // handing.cpp
  bool goes_by_buffers(const Request& request, RemoteLayout& where);
  std::uint64_t longest_buffer() const;
  // Bytes of a message that nobody has matched which may lie in copy buffers.
  std::uint64_t longest_whole() const;
  CopyBuffer& prepare_buffer(std::uint64_t offset, std::uint64_t whole);
  CopyBuffer* take_buffer(std::uint64_t bytes, std::size_t spared, std::uint64_t& offset);
  CopyBuffer* take_spare(Request& request, std::uint64_t& offset);
  void lend_buffer(std::uint64_t offset);
  void reclaim_buffers();
  copying::Handover::Choice next_kinds(Out& out, std::uint64_t bytes);
  bool hand_over(int member, const Envelope& envelope, const layout::Data& data);
  bool begin_chain(Request& request);
  void begin_buffer(Request& request, CopyBuffer& buffer);
  void drop_sample(Request& request);
  bool continue_chain(Request& request, std::uint64_t length);
  bool fill_buffers(Request& request, std::uint64_t length, Guard& guard);
  bool pump_chain(Request& request, Guard& guard);
  void end_chain(Request& request);
  void accept_buffers(Request& request, const Arrived& message);
  bool drain_buffers(Request& request, Guard& guard);
  std::uint64_t spare_buffer() const { return std::uint64_t(mine_->spare_buffer - process_.segment().base()); }
  CopyBuffer& own_buffer(std::uint64_t offset) const { return buffer_of(me_, offset); }
  CopyBuffer& buffer_of(int member, std::uint64_t offset) const {
    return *reinterpret_cast<CopyBuffer*>(base_[std::size_t(member)] + offset);
  }

  // answers.cpp
  Started offer(Request& request, const RemoteLayout& where, Kind kind, const layout::Data& with);
  void stop_looking(Request& request);
  bool take_answers();
  void take_answer(Request& request);
  void answer(int member, std::uint64_t transfer, State state);
  void acknowledge(int member, std::uint64_t transfer, State state);
  void enlist(int member, std::uint64_t transfer);

  // eager.cpp
  void finish_eager(Request& request, int member, const Envelope& envelope, const std::byte* payload,
                    std::uint64_t bytes);

  // transfer.cpp
  bool add_transfers();
  Transfer* new_transfer(std::uint64_t& offset);
  bool begin_transfer(Request& request, const RemoteLayout& where);
  void accept(Request& request, const Arrived& message);
  const MessageProtocol& choose(Request& request);
  State try_way(Request& request, bool by_calls, bool mapped);
  void begin_send(Request& request);
  bool send_blocks(Request& request, Guard& guard);
  bool receive_blocks(Request& request, Guard& guard);
  bool copy_block(Request& request, Guard& guard, bool from_back);
  void end_send(Request& request);
  void end_receive(Request& request);
  void reclaim();
  RemoteLayout describe(int member, const layout::Data& data);
  reach::RemoteBuffer place_for(int member, const std::byte* begin, std::size_t bytes);
  std::byte* resolve(int member, const reach::RemoteBuffer& place, std::shared_ptr<const void>& mapping);
  bool adopt(int member, const RemoteLayout& where, std::uint64_t bytes, InBlocks& part);
  Transfer& transfer_of(int member, std::uint64_t offset) const {
    return *reinterpret_cast<Transfer*>(base_[member] + offset);
  }
  Cell& cell_at(Reference reference) const {
    return *reinterpret_cast<Cell*>(base_[(reference >> 48) - 1] + (reference & 0xffff'ffff'ffff));
  }

  team::Process& process_;
  const int me_, members_;
  std::atomic<bool> threaded_{false};         // take the lock
  std::atomic<bool> program_threads_{false};  // for good, not only while the rank is lent
  bool tries_ways_ = false;                   // large messages, where there is a choice
  std::mutex lock_;
  std::vector<std::byte*> base_;
  std::vector<MessageMailbox*> box_;
  std::vector<Peer*> peer_;
  MessageMailbox* mine_ = nullptr;
  Reference shadow_ = 0;
  Reference undelivered_ = 0;  // a cell that is out of the queue, for which there was no memory yet
  unsigned next_cell_ = 0;
  std::vector<Out> out_;
  std::vector<In> in_;
  std::vector<int> talking_, silent_;  // members whose fastbox is polled every time, and now and then
  std::uint32_t polls_ = 0;
  std::atomic<bool> look_at_all_{false};  // at silent fastboxes and all messages under way, in the next poll
  std::uint64_t ring_bytes_ = 0;
  std::size_t waiting_for_room_ = 0;
  std::size_t undecided_ = 0;    // unexpected messages
  std::size_t speculative_ = 0;  // of elsewhere.cpp
  bool standing_in_ = false;     // the present step is a stand-in's, or the helper's

  Posted posted_;
  Unexpected unexpected_;
  Follower* due_ = nullptr;
  List stalled_;
  std::atomic<int> watchers_{0};
  std::atomic<int> waiters_{0};  // threads of the program, where there may be several
  std::vector<std::pair<std::uint64_t, std::uint64_t>> retired_boards_;  // and the starts of each
  List partitioned_;                                                     // partitions.hpp
  std::vector<std::unique_ptr<UnexpectedMessage>> spare_unexpected_;
  InTurn sending_, receiving_;
  List offered_, listed_;  // sends that wait for an answer: those that are looked at, and the others (answers.cpp)
  unsigned offered_count_ = 0;
  unsigned chains_that_wait_ = 0;       // sends whose copy buffers wait for a match, or did
  std::vector<std::uint64_t> retired_;  // Transfers of sends that are complete while the receiver still looks
  std::size_t retired_at_ = 0;          // where reclaim looks next
  std::vector<std::uint64_t> free_transfers_;
  std::size_t transfers_ = 0;  // allocated so far
  memory::CopyBuffers* buffers_ = nullptr;
  std::uint64_t copied_always_ = 0;  // bytes up to which messages go through copy buffers, wherever they lie
  std::uint64_t in_record_ = 0;      // up to which they travel with their record
  std::vector<std::uint64_t> lent_;  // a ring: buffers that receivers still read, the oldest first
  std::size_t lent_begin_ = 0, lent_end_ = 0;
  const Request* spare_user_ = nullptr;
  int spare_member_ = 0;               // to whom it sends, or the last one did
  unsigned spare_turn_ = 0;            // how often a half of the spare buffer was taken for it, or for the last one
  std::vector<std::uint64_t> closed_;  // contexts
  std::vector<std::uint32_t> closed_seen_;  // per member, of its ProcessHeader::closed
  std::atomic<std::uint32_t> closed_by_anyone_{0};
  struct Reached {
    Reached(reach::Peers& reach, Peer* peer) : theirs(reach, peer, peer ? peer->mappers : 0) {}
    reach::Attachments theirs;
    reach::Region passed;  // of ours, for which it has what it needs
  };
  std::vector<Reached> attached_;
  std::vector<const reach::MemoryMapper*> calls_;  // by which its memory is read and written, nullptr: none
  Counts counts_;
  // Places for short lists of runs, which are handed out again and again. Threads free them whenever they like.
  class ListsOfRuns {
   public:
    static constexpr std::size_t bytes = 4 * sizeof(layout::Run), places = 64;
    std::optional<std::size_t> take(memory::Arena& arena);
    void put_back(std::size_t place);

   private:
    std::mutex mutex_;
    std::vector<std::size_t> free_;
    bool asked_ = false;
  } lists_of_runs_;
};

}  // namespace nearfield::messages
