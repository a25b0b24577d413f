// The hang report: the calls of all processes of the node, and why they do not go on.
//
//   a wait             publishes what it waits for, and for whom, at each inspection (waits)
//   a wait that lasts  for `stall`: takes CallBoard::called and prints one report for all (report.hpp); waits that had
//                      begun by then are part of it and print nothing
//   a signal           makes a thread of its own print a report at once, whatever the rank is doing (listen)
//
// A call that returns reads no clock, so nobody knows since when another process has been outside of calls. So a wait
// watches the calls of the others from half of `stall` on.
#pragma once
#include <mutex>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/hang_report/report.hpp"
#include "engine/reach/peers.hpp"
#include "engine/waiting/contention.hpp"

namespace nearfield::hang_report {

struct Awaited {
  std::uint16_t count = 0;
  std::int16_t member[most_awaited] = {};
  void add(int m) {
    if (count < most_awaited) member[count] = std::int16_t(m);
    ++count;
  }
};

struct NodeProcess {
  const reach::Peer* peer;  // nullptr for ourselves
  const reach::SegmentHeader* header;
  CallBoard* board;
};

class HangReporter {
 public:
  // Functions of the shim, which knows the calls.
  struct Language {
    const char* (*name)(unsigned function);
    // Returns this thread's post, nullptr: it has none. Fills in what its call waits for (`call` is 0 outside of
    // calls); `fully`: with names and sites.
    CallPost* (*fill_in)(CallState& state, bool fully);
  };
  // `members`: the node's processes, including this one. `stall`: seconds after which a wait is reported, 0: never.
  // `contention`: of our waits.
  HangReporter(std::vector<NodeProcess> members, double stall, Language language,
               const waiting::Contention& contention);
  HangReporter(const HangReporter&) = delete;

  // Called at each inspection of a wait, `elapsed` ns after it has begun.
  void waits(std::uint64_t elapsed, const Awaited& awaited);
  // Notes the members that a suspended body waits for.
  void body_waits(const Awaited& awaited);
  int member_of(const reach::Peer* peer) const;
  // Prints a report. `unseen`: the state of this thread, if it has no post.
  void call(const char* why, const CallState* unseen = nullptr);
  // Identifies the job on this node: all its processes return the same number.
  std::uint64_t job() const { return members_[0].header->probe; }
  // Makes that signal, a name ("USR1") or number, write a hang report, unless the program uses it.
  Result<void> listen(const std::string& signal);

 private:
  void watch(std::uint64_t now);
  std::vector<ProcessSeen> processes_seen(std::uint64_t now);

  const std::vector<NodeProcess> members_;
  const double stall_;
  const Language language_;
  const waiting::Contention& contention_;
  struct Watched {
    std::uint64_t call = 0, since = 0;
  };
  std::mutex mutex_;  // guards the members below
  std::vector<Watched> watched_;
  Awaited of_bodies_;
  std::uint64_t bodies_waited_ = 0;
};

}  // namespace nearfield::hang_report
