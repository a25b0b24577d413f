// The hang report: where all processes of the node are, and what seems to keep them.
//
//   a wait             tells what it waits for, and for whom, at its inspections (waits)
//   one that lasts     takes CallBoard::called and prints one report for all (report.hpp); waits that had begun by then
//                      are in it, and print nothing
//   a signal           does the same at once, from a thread of its own, whatever the rank is in (listen)
//
// Nobody can tell since when another one is outside of MPI, since a call that returns looks at no clock: whoever waits
// watches the others from half of that time on.
#pragma once
#include <mutex>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/hang_report/report.hpp"
#include "engine/reach/peers.hpp"

namespace nearfield::hang_report {

// Members that somebody waits for.
struct Awaited {
  std::uint16_t count = 0;
  std::int16_t member[most_awaited] = {};
  void add(int m) {
    if (count < most_awaited) member[count] = std::int16_t(m);
    ++count;
  }
};

// One of the node's processes.
struct NodeProcess {
  const reach::Peer* peer;  // nullptr for ourselves
  const reach::SegmentHeader* header;
  CallBoard* board;
};

class HangReporter {
 public:
  // What the engine cannot know of calls.
  struct Language {
    const char* (*name)(unsigned function);
    // This thread's post, nullptr: it has none. Fills in what its call waits for (`call` is 0 where it is in none);
    // `fully`: with names and places.
    CallPost* (*tell)(CallState& told, bool fully);
  };
  // `members`: the node's processes, ourselves among them. `stall`: seconds, 0: never by itself.
  HangReporter(std::vector<NodeProcess> members, double stall, Language language);
  HangReporter(const HangReporter&) = delete;

  // At each inspection of a wait: `elapsed` ns after it has begun, for whom.
  void waits(std::uint64_t elapsed, const Awaited& awaited);
  // A body that is suspended waits for those.
  void body_waits(const Awaited& awaited);
  int member_of(const reach::Peer* peer) const;
  // Prints it. `unseen`: what this thread waits for, where it has no post.
  void call(const char* why, const CallState* unseen = nullptr);
  // By which the node's processes of this job are known, the same to all of them and in no other job.
  std::uint64_t job() const { return members_[0].header->probe; }
  // From now on that signal writes a hang report, unless the program uses it. By its name ("USR1") or number.
  Result<void> listen(const std::string& signal);

 private:
  void watch(std::uint64_t now);
  std::vector<Attendance> attendance(std::uint64_t now);

  const std::vector<NodeProcess> members_;
  const double stall_;
  const Language language_;
  struct Watched {
    std::uint64_t call = 0, since = 0;
  };
  std::mutex mutex_;  // of what follows
  std::vector<Watched> watched_;
  Awaited of_bodies_;
  std::uint64_t bodies_told_ = 0;
};

}  // namespace nearfield::hang_report
