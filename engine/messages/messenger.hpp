// Point to point between the processes of a node.
//
// One Messenger per process, made with the team of all processes that the program started on this node. It knows
// members of that team; communicators are contexts, numbers equal on all their ranks and different for each.
//
//   channels.hpp         records to and from each member: receive queue, rings; mailboxes.hpp: where they are, wake-ups
//   matcher.hpp          which message is for which receive
//   protocols.hpp        how messages move: rows, over copy_chains.hpp, transfers.hpp and remote_memory.hpp
//   continuations.hpp    what goes on when something else has happened
//   closed_contexts.hpp  communicators that a member has revoked
//
// Each of them says what it needs of the lock (lock.hpp), which the Messenger takes.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/base/function_ref.hpp"
#include "engine/messages/board.hpp"
#include "engine/messages/closed_contexts.hpp"
#include "engine/waiting/progress.hpp"

namespace nearfield::messages {

class Messenger final : public waiting::Source {
 public:
  // Collective over the team. An Error on all members alike.
  static Result<std::unique_ptr<Messenger>> create(team::Team& base, team::Bootstrap& bootstrap, bool threaded);
  ~Messenger();

  team::Process& process() { return mailboxes_.process(); }
  int members() const { return mailboxes_.count(); }

  // ---- sends. `member` is the destination in the base team, envelope.source our rank in the communicator.
  // True when the message is on its way and nothing of `data` is needed any more.
  bool send_at_once(int member, const Envelope& envelope, const layout::Data& data);

  // The same for what a record holds; false where that is not so simple.
  bool send_short(int member, Envelope envelope, const std::byte* data, std::uint64_t bytes) {
    return bytes <= short_ && !lock_.threaded() && !protocols_.any_waits_for_room() &&
           channels_.push_short(member, envelope, data, bytes);
  }

  // ---- receives that wait, from one member and with one tag, into `room` bytes
  // Its bytes once it is there, as a whole. Looks for a while into that member's ring, and nowhere else: -1 says
  // nothing of whether it has come.
  std::int64_t receive_at_once(int member, Envelope wanted, std::byte* to, std::uint64_t room) {
    return lock_.threaded() ? -1 : matcher_.receive_at_once(member, wanted, to, room);
  }
  // Bytes up to which a message travels with its record, and takes no copy buffer.
  std::uint64_t in_record() const { return protocols_.limits.in_record; }
  void start(Request& request);  // a send or a receive with its fields filled in; completes later
  // `may_come_from(member)`: of a receive from anybody, whether that member's death ends the wait; null: any one's.
  void wait(Request& request, FunctionRef<bool(int)> may_come_from = nullptr);
  // A synchronous send that lies in copy buffers as a whole need not be met any more; false: it is not there yet.
  bool leave(Request& request);
  // The caller does not leave its call before that send is complete.
  void attend(Request& request);
  // A receive that is matched already.
  void start_matched(Request& request, UnexpectedMessage& message);
  // Receives that are not matched yet complete as cancelled; sends when the receiver agrees.
  void cancel(Request& request);
  // Takes the request out of everything after a wait for it has thrown.
  void abandon(Request& request);
  // `choose()` says which of the posted receives is met elsewhere, nullptr: none; nothing is matched meanwhile. That
  // one is out of matching then, and never completes here. It may set Request::elsewhere of posted ones.
  void take_out(FunctionRef<Request*()> choose);

  // ---- continuations
  void forget(Follower& follower);
  // Under the lock: `note()`, and then it is asked in every poll.
  void stall(Stalled& stalled, FunctionRef<void()> note);
  void unstall(Stalled& stalled);
  void count_watchers(int more) { continuations_.count_watchers(more); }

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
  // Whether a member that is still there has not got all that was sent to it.
  bool sends_pending();

  // ---- progress
  bool poll() override;  // whatever can be done now; whether anything was
  // Whether something of ours needs us to poll.
  bool busy() override;
  void asleep_on(waiting::WakeWord* word) override { mailboxes_.asleep_on(word); }
  // Until `done()`. `awaited(member)`: whether that member's death ends the wait. `also()` is called beside polls.
  void wait_until(FunctionRef<bool()> done, FunctionRef<bool(int)> awaited, FunctionRef<void()> also,
                  const char* doing);
  // If it sleeps in a wait for messages it looks again.
  void ring(int member) { mailboxes_.wake(member); }
  void wake_ourselves() { mailboxes_.wake(mailboxes_.me()); }
  // The word that waits for messages sleep on; between publish_asleep(true) and publish_asleep(false) whoever sends to
  // us rings it.
  waiting::WakeWord& wake_word() { return mailboxes_.own().wake_word; }
  void publish_asleep(bool asleep);

  // ---- deaths, for those who poll; waits look themselves
  bool look_for_dead();  // now: a system call for each member; whether any has died
  bool any_dead() const { return any_dead_.load(std::memory_order_relaxed); }
  bool known_dead(int member) const { return mailboxes_.known_dead(member); }
  team::Died death_of(int member, const char* doing) const;

  // ---- the progress thread (progress_thread.hpp)
  void enter_host(waiting::WakeWord& word);  // all take the lock; peers that are blocked on us may ring that word
  void leave_host();                         // returns when the thread is through with its step
  // One step of the thread; whether anything moved. `rank_is_back`: asked under the lock, which is kept throughout;
  // then nothing is done. `sleeps_on`: peers may ring it first.
  bool step_in_host(FunctionRef<bool()> rank_is_back, waiting::WakeWord* sleeps_on);
  bool busy_in_host(FunctionRef<bool()> rank_is_back);  // asked as above; false: the rank is back
  bool step_beside();                                   // while the rank computes. pre: threaded()

  // ---- memory of messages
  std::byte* base(int member) const { return mailboxes_.base(member); }
  layout::View share(layout::Builder& builder, std::int64_t extent, std::shared_ptr<const void>& keep) {
    return protocols_.memory.share(builder, extent, keep);
  }
  // partitions.hpp: a board in our segment, zeroed, 0: there is no room. It goes back when the receiver is through with
  // so many starts.
  std::uint64_t new_board(const Partitions& partitions);
  void retire_board(std::uint64_t board, std::uint64_t starts);

  // ---- contexts in which nothing is sent or matched any more, here and at all members (communicators that were
  // revoked). Requests in them end by ErrorKind::closed.
  void close(std::uint64_t context);
  // Takes in what others have closed; whether there was anything. One load where there is nothing.
  bool look_for_closed();
  bool is_closed(std::uint64_t context);
  void enter(Link& partitioned);
  void leave(Link& partitioned);

  const Counts& counts() const { return counts_; }
  // The program's threads call at the same time, from now on.
  void set_threaded() { lock_.set_program_threads(); }
  bool threaded() const { return lock_.threaded(); }

 private:
  Messenger(team::Team& base, bool threaded);  // throws std::bad_alloc
  static std::unique_ptr<Messenger> prepare(team::Team& base, bool threaded, std::uint64_t& mailbox);
  void look_for_damage();
  void inspect(std::uint64_t elapsed, FunctionRef<bool(int)> awaited, const char* doing);
  void start_locked(Request& request, Guard& guard);
  bool poll_locked(Guard& guard);

  Counts counts_;
  MessengerLock lock_;
  Mailboxes mailboxes_;
  Channels channels_;
  Continuations continuations_;
  Protocols protocols_;
  Matcher matcher_;
  ClosedContexts closed_;
  const std::uint64_t short_;             // bytes that a record of a ring holds
  std::atomic<bool> look_at_all_{false};  // at silent rings and all messages under way, in the next poll
  std::atomic<bool> any_dead_{false};
  bool registered_ = false;                                              // with the process's progress
  std::vector<std::pair<std::uint64_t, std::uint64_t>> retired_boards_;  // and the starts of each
};

}  // namespace nearfield::messages
