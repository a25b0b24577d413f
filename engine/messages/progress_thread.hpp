// The thread that goes on with messages and suspended bodies where the rank does not.
//
//   Serves::in_host   while the rank is in a call of the host, which knows nothing of us: a peer may lack room for what
//                     it sends, or wait for a receive that was posted here, and the call may in turn wait for that
//                     peer. Started when the rank first enters the host; it costs the rank nothing while nobody rings:
//                     the messenger takes its lock only while the rank is in the host
//   Serves::always    while the rank computes as well (NEARFIELD_PROGRESS=thread); the messenger takes its lock all the
//                     time (Messenger::set_threaded)
//
//   rank                                 progress thread                               peer
//   enters the host: in_host += 1        serves while (in_host mode) in_host > 0, or   is blocked on us, or has done
//   begins something                       (always) no thread of the program waits in    what a body of ours awaits:
//     with something under way: wakes      a call of ours, or a CPU is free              rings where we sleep
//     it (below)                         looks until nothing moves, then              sends: rings where we sleep
//   waits: keeps all going itself          something is under way: naps                 (always; in the host the
//   leaves the host: in_host -= 1,         nothing is: sleeps until it is rung          senders would pay for it)
//     takes the lock once
//
// It sleeps on `word_`, which lies in the process's header, or (always) on the mailbox's word as waits for messages do;
// `sleeps_on_` tells which. It is woken by who begins something where it sleeps for longer than `unnoticed`:
//
//   progress thread                      rank
//   asleep_ = true                       in_host += 1, or something begins
//   serves, and something to do?         asleep_.exchange(false): was it true?
//   sleeps                                 rings sleeps_on_
//
// These are stored and loaded crosswise by sequentially consistent accesses and locks; should a ring be missed all the
// same, a sleep ends by itself.
//
// It calls nothing of the host's and nothing of the program's: bodies do not
// (mpi/shim/collectives/engine/combining.hpp), and messages that would have to be asked for elsewhere stay undecided
// until the rank is back. Nobody waits for it: without it, or while it has no CPU, everything goes on by the program's
// calls.
#pragma once
#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/messages/messenger.hpp"

namespace nearfield::messages {

enum class Serves : std::uint8_t { in_host, always };

class ProgressThread final : public waiting::Background {
 public:
  // `messenger`: may be none for Serves::always. `ranks`: the processes of the ranks on this node, for the same.
  // Neither this nor the messenger is ever destroyed once the thread has been started. Throws std::bad_alloc.
  ProgressThread(team::Process& process, Messenger* messenger, Serves when, std::vector<pid_t> ranks = {});
  ProgressThread(const ProgressThread&) = delete;
  ~ProgressThread();
  // False: no thread can be had. For Serves::in_host the rank's first enter_host() does it.
  bool start();
  // Returns when the thread has ended. There is none from then on.
  void stop();

  // By every thread of the program that goes where it progresses nothing of ours, each with a leave_host() when it
  // returns. False: nobody can need us, or no thread can be had; then it leaves nothing.
  bool enter_host();
  void leave_host();
  bool in_host() const { return in_host_.load(std::memory_order_relaxed) > 0; }

  // ---- Background
  void wake() override;
  void wait_ends() override;

 private:
  void run();
  bool serves() const;
  bool is_needed();
  bool step(waiting::WakeWord* sleeps_on = nullptr);
  bool sleep(bool busy, std::uint64_t nanoseconds);

  team::Process& process_;
  waiting::Progress& progress_;
  Messenger* const messenger_;
  const Serves when_;
  waiting::WakeWord& word_;
  std::atomic<waiting::WakeWord*> sleeps_on_;
  std::atomic<bool> asleep_{false};  // for long enough that it has to be woken
  std::atomic<bool> stopped_{false};
  std::atomic<int> in_host_{0};  // threads of the program
  std::atomic<bool> started_{false};
  std::mutex starting_;
  pthread_t thread_{};
  pid_t pid_ = 0;  // whose thread it is
  class Place;
  std::unique_ptr<Place> place_;  // none: it runs where the rank does
};

}  // namespace nearfield::messages
