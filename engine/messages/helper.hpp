// A thread that keeps going what has begun while the program computes (NEARFIELD_PROGRESS=thread).
//
//   program                          helper                                    peer
//   begins something: wakes it       looks; while nothing moves it naps on     does what a body awaits, or sends: rings
//   computes                           a word that peers ring
//   waits in a call of ours,         after some naps sleeps until that
//     progresses all by itself         wait ends
//   nothing is under way             after some naps sleeps                    has no room for what it sends: rings
//   blocks in the host               as while the program computes, but looks more often
//
// All that it does is under the locks that several threads of a program need as well, so the messenger has to take its
// own (Messenger::set_threaded). It calls nothing of the host's and nothing of the program's: bodies do not
// (mpi/shim/collectives/engine/combining.hpp), and messages that would have to be asked for elsewhere stay undecided
// until the rank is back. Nobody waits for it: without it, or while it has no CPU, everything goes on by the program's
// calls.
//
// Who begins something rings only where the helper sleeps for longer than `unnoticed`. `asleep_` and what is under way
// are stored and loaded crosswise by read-modify-writes and locks; should a ring be missed all the same, a sleep ends
// by itself.
#pragma once
#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <vector>

#include "engine/machine/spare_cpus.hpp"
#include "engine/messages/messenger.hpp"

namespace nearfield::messages {

class Helper final : public waiting::Assistant {
 public:
  // nullptr: no thread or no memory can be had. `messenger` may be none; `ranks`: the processes of the ranks on this
  // node. Never destroyed.
  static Helper* start(team::Process& process, Messenger* messenger, std::vector<pid_t> ranks);
  // Returns when the thread has ended.
  void stop();
  // Threads of the program that block in the host: so many more.
  void count_away(int more) { away_.fetch_add(more, std::memory_order_relaxed); }

  // ---- Assistant
  void wake() override;
  void wait_ends() override;

 private:
  Helper(team::Process& process, Messenger* messenger, std::vector<pid_t> ranks, Atomic<std::uint32_t>& word);
  void run();
  bool dispensable() const;
  bool step();
  bool nap(std::uint64_t nanoseconds);
  bool sleep();
  bool look_once_more();
  void find_cpu();

  team::Process& process_;
  waiting::Progress& progress_;
  Messenger* const messenger_;
  const std::vector<pid_t> ranks_;
  std::vector<machine::CpuSet> cpus_of_ranks_;
  const machine::CpuSet granted_, near_;
  const pid_t pid_;
  Atomic<std::uint32_t>& word_;  // in our segment
  std::atomic<Atomic<std::uint32_t>*> sleeps_on_;
  std::atomic<bool> asleep_{false};  // for long enough that it has to be woken
  std::atomic<bool> stopped_{false};
  std::atomic<int> away_{0};
  bool on_free_cpu_ = false;
  std::uint64_t looked_for_cpu_ = 0;  // ns
  pthread_t thread_{};
};

}  // namespace nearfield::messages
