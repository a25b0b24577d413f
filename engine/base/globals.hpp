// What the engine has once per process and nobody can hand on: what lines of log and handlers of signals
// need, memory that is kept, and what has been found out for all peers. All else belongs to team::Process.
#pragma once
#include <atomic>
#include <cstdint>

#include "engine/base/atomic.hpp"
#include "engine/base/log.hpp"

namespace nearfield {

namespace memory {
struct TemporaryPool;
}  // namespace memory
namespace reach {
class Peers;
}  // namespace reach
namespace tuning {
struct Pace;
}
namespace choosing {
struct KeptDecisions;
}
namespace waiting {
class WakeWord;
}

struct Globals {
  // base/log.cpp
  std::atomic<LogLevel> log_level{LogLevel::warn};
  std::atomic<int> log_rank{-1};
  bool log_has_complained = false;
  // waiting/wait.cpp: lines about contention
  std::atomic<std::uint64_t> contention_line_due{0};  // nanoseconds
  std::atomic<bool> contention_end_wanted{false};
  // memory/temporaries.cpp, choosing/decisions.cpp
  std::atomic<memory::TemporaryPool*> temporaries{nullptr};
  std::atomic<choosing::KeptDecisions*> decisions{nullptr};
  std::atomic<reach::Peers*> heap_peers{nullptr};  // reach/heap_mapper.cpp
  // tuning/samples.hpp: best row of any peer, the last one found, by family of rows and class of lengths
  static constexpr std::size_t row_families = 3, length_classes = 16;
  std::atomic<std::uint8_t> best_row[row_families][length_classes] = {};
  std::atomic<const tuning::Pace*> pace{nullptr};          // tuning/selector.cpp: of tests
  std::atomic<std::uint64_t> lines_streamed{0};            // copying/copy.cpp
  std::atomic<waiting::WakeWord*> reports_asked{nullptr};  // hang_report/reporter.cpp: rung by the handler of a signal
};

// A library with more of that kind has these in its own object, and defines the function itself.
Globals& globals() noexcept;

}  // namespace nearfield
