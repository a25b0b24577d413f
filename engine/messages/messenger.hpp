// Point-to-point messages between the processes of a node.
//
// There is one Messenger per process, made for the team of all processes that the program started on this node. It
// addresses members of that team. To it, a communicator is a context: a number that is equal on all ranks of the
// communicator and different for each communicator.
//
//   channels.hpp         records to and from each member: receive queue, rings; mailboxes.hpp: where they are, wake-ups
//   matcher.hpp          which message is for which receive
//   protocols.hpp        how messages move: rows, over copy_chains.hpp, transfers.hpp and remote_memory.hpp
//   continuations.hpp    work that waits for something else
//   closed_contexts.hpp  communicators that a member has revoked
//
// Each file says which of its functions need the lock (lock.hpp). The Messenger takes it.
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
  // Collective over the team. All members get an Error, or none does.
  static Result<std::unique_ptr<Messenger>> create(team::Team& base, team::Bootstrap& bootstrap, bool threaded);
  ~Messenger();

  team::Process& process() { return mailboxes_.process(); }
  int members() const { return mailboxes_.count(); }

  // ---- sends. `member` is the destination in the base team, envelope.source our rank in the communicator.
  // Returns whether the message is on its way and `data` is not needed any more; false: nothing has been done.
  bool send_at_once(int member, const Envelope& envelope, const layout::Data& data);

  // The same for a message that a record holds, without the lock. False: use send_at_once().
  bool send_short(int member, Envelope envelope, const std::byte* data, std::uint64_t bytes) {
    return bytes <= short_ && !lock_.threaded() && !protocols_.any_waits_for_room() &&
           channels_.push_short(member, envelope, data, bytes);
  }

  // ---- receives that wait, from one member and with one tag, into `room` bytes
  // Polls that member's ring for a while, and nothing else. Returns the bytes of the received message; -1: none was
  // received, though it may be there.
  std::int64_t receive_at_once(int member, Envelope wanted, std::byte* to, std::uint64_t room) {
    return lock_.threaded() ? -1 : matcher_.receive_at_once(member, wanted, to, room);
  }
  // Bytes up to which a message travels with its record, and takes no copy buffer.
  std::uint64_t in_record() const { return protocols_.limits.in_record; }
  void start(Request& request);  // pre: its fields are filled in. It completes now or later
  // Waits for the request. `may_come_from(member)`: whether the death of that member ends a wait for a receive from
  // anybody; null: any member's death does.
  void wait(Request& request, FunctionRef<bool(int)> may_come_from = nullptr);
  // Completes a synchronous send without a match, once copy buffers hold all of it; false: they do not yet.
  bool leave(Request& request);
  // Notes that the caller waits until that send is complete.
  void attend(Request& request);
  // Starts a receive for a message that probe() has taken out.
  void start_matched(Request& request, UnexpectedMessage& message);
  // A receive that is not matched yet completes as cancelled; a send does if its receiver has not matched it.
  void cancel(Request& request);
  // After a wait for it has thrown: removes the request from all lists and completes it with that error, unless it is
  // complete.
  void abandon(Request& request, ErrorKind error = ErrorKind::broken);
  // Removes the posted receive that choose() returns, which is met elsewhere and never completes here; nullptr: none.
  // Nothing is matched meanwhile. choose() may set Request::elsewhere of posted receives.
  void take_out(FunctionRef<Request*()> choose);

  // ---- continuations
  void forget(Follower& follower);
  // Calls note() under the lock; then every poll calls stalled.go_on(), until that returns true.
  void stall(Stalled& stalled, FunctionRef<void()> note);
  void unstall(Stalled& stalled);
  void count_watchers(int more) { continuations_.count_watchers(more); }

  // ---- probes
  struct Found {
    Envelope envelope;
    std::uint64_t bytes;
    UnexpectedMessage* message;  // only if it was taken out
  };
  // Finds the oldest unexpected message that would match. `take`: takes it out of matching.
  bool probe(const Envelope& wanted, bool take, Found& found);
  // Returns the oldest unexpected message; none also if another thread holds the lock.
  struct Lost {
    int member;
    Envelope envelope;
  };
  std::optional<Lost> oldest_unexpected();
  // Returns whether a living member has not yet got all that we sent to it.
  bool sends_pending();

  // ---- progress
  bool poll() override;  // does what can be done now; returns whether anything moved
  void poll_surely();    // also if another thread has the lock, for which it waits
  // Whether something of ours needs us to poll.
  bool busy() override;
  // A thread that is awake again names the progress thread's word if another thread is still in the host.
  void asleep_on(waiting::WakeWord* word) override {
    mailboxes_.asleep_on(word ? word : rung_in_host_.load(std::memory_order_relaxed));
  }
  // Waits until `done()`. `awaited(member)`: whether that member's death ends the wait. `also()` is called in each
  // turn.
  void wait_until(FunctionRef<bool()> done, FunctionRef<bool(int)> awaited, FunctionRef<void()> also,
                  const char* doing);
  // Wakes the member if it sleeps in a wait for messages.
  void ring(int member) { mailboxes_.wake(member); }
  void wake_ourselves() { mailboxes_.wake(mailboxes_.me()); }
  // The word on which waits for messages sleep. Whoever sends to us rings it, but only between publish_asleep(true) and
  // publish_asleep(false).
  waiting::WakeWord& wake_word() { return mailboxes_.own().wake_word; }
  void publish_asleep(bool asleep);

  // ---- deaths, for those who poll; waits look themselves
  bool look_for_dead();  // looks now, by a system call for each member; returns whether any has died
  bool any_dead() const { return any_dead_.load(std::memory_order_relaxed); }
  bool known_dead(int member) const { return mailboxes_.known_dead(member); }
  team::Died death_of(int member, const char* doing) const;

  // ---- the progress thread (progress_thread.hpp)
  void enter_host(waiting::WakeWord& word);  // from now on all threads lock, and blocked peers ring that word
  void leave_host();                         // returns when the step of the progress thread has ended
  // Does one step of the progress thread. Returns whether anything moved. `rank_is_back` is asked under the lock, which
  // is kept throughout; if it returns true nothing is done. `sleeps_on` is published first: blocked peers ring it.
  bool step_in_host(FunctionRef<bool()> rank_is_back, waiting::WakeWord* sleeps_on);
  bool busy_in_host(FunctionRef<bool()> rank_is_back);  // asked as above; false: the rank is back
  // Calls bodies(), which may use the messenger, unless the rank is back. A rank that comes back meanwhile locks.
  bool run_in_host(FunctionRef<bool()> rank_is_back, FunctionRef<bool()> bodies);

  // ---- memory of messages
  std::byte* base(int member) const { return mailboxes_.base(member); }
  layout::View share(layout::Builder& builder, std::int64_t extent, std::shared_ptr<const void>& keep) {
    return protocols_.memory.share(builder, extent, keep);
  }
  // Allocates a zeroed board (partitions.hpp) in our segment; 0: there is no room. retire_board: frees it once the
  // receiver has consumed so many starts.
  std::uint64_t new_board(const Partitions& partitions);
  void retire_board(std::uint64_t board, std::uint64_t starts);

  // ---- contexts in which nothing is sent or matched any more, here and at all members (communicators that were
  // revoked). Requests in them end by ErrorKind::closed.
  void close(std::uint64_t context);
  // Ends our requests in contexts that others have closed. Returns whether there were any. One load where there are
  // none.
  bool look_for_closed();
  bool is_closed(std::uint64_t context);
  void enter(Link& partitioned);
  void leave(Link& partitioned);

  const Counts& counts() const { return counts_; }
  // From now on several threads of the program may call at the same time.
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
  const std::uint64_t short_;             // bytes of a message that a record of a ring holds
  std::atomic<bool> look_at_all_{false};  // the next poll looks at silent rings and all messages under way
  std::atomic<bool> any_dead_{false};
  std::atomic<waiting::WakeWord*> rung_in_host_{nullptr};  // the progress thread's word while the rank is in the host
  bool registered_ = false;                                // with the process's progress
  std::vector<std::pair<std::uint64_t, std::uint64_t>> retired_boards_;  // offset and number of starts of each
};

}  // namespace nearfield::messages
