// A thread that progresses messages and suspended bodies while the rank does not.
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
// `sleeps_on_` points to the word. A thread that begins something wakes it if its sleep is longer than `unnoticed`:
//
//   progress thread                      rank
//   asleep_ = true                       in_host += 1, or something begins
//   serves, and something to do?         asleep_.exchange(false): was it true?
//   sleeps                                 rings sleeps_on_
//
// Each side stores its word and then loads the other's, by sequentially consistent accesses or under locks, so that no
// ring is missed. Every sleep is bounded all the same.
//
// It calls no function of the host or of the program. Bodies do not either (mpi/shim/collectives/engine/combining.hpp),
// and messages about which the other library would have to be asked (elsewhere.cpp) stay undecided until the rank is
// back. Nobody waits for the thread: without it, or while it has no CPU, everything goes on by the program's calls.
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
  // `messenger`: nullptr only for Serves::always. `ranks`: processes of the ranks on this node, for Serves::always.
  // Neither this nor the messenger is ever destroyed once the thread has been started. Throws std::bad_alloc.
  ProgressThread(team::Process& process, Messenger* messenger, Serves when, std::vector<pid_t> ranks = {});
  ProgressThread(const ProgressThread&) = delete;
  ~ProgressThread();
  // False: no thread can be had. For Serves::in_host the rank's first enter_host() calls it.
  bool start();
  // Returns when the thread has ended. There is none from then on.
  void stop();

  // Called by a thread of the program before a call that progresses nothing of ours, with leave_host() after it. False:
  // nobody can need us, or no thread can be had; then there is no leave_host().
  bool enter_host();
  void leave_host();
  bool in_host() const { return in_host_.load(std::memory_order_seq_cst) > 0; }  // SYNC: in-host

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
  pid_t pid_ = 0;  // the process that has started it
  class Place;
  std::unique_ptr<Place> place_;  // nullptr: it runs where the rank does
};

}  // namespace nearfield::messages
