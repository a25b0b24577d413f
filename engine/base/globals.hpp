// State that the engine keeps once per process, since callers cannot pass it on: what log lines and signal handlers
// need, pooled memory, and choices that hold for all peers. All other state belongs to team::Process.
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
  // tuning/samples.hpp: the row found best last, with whichever peer, for each family of rows and class of lengths
  static constexpr std::size_t row_families = 3, length_classes = 16;
  std::atomic<std::uint8_t> best_row[row_families][length_classes] = {};
  std::atomic<const tuning::Pace*> pace{nullptr};          // tuning/selector.cpp: set by tests
  std::atomic<std::uint64_t> lines_streamed{0};            // copying/copy.cpp
  std::atomic<waiting::WakeWord*> reports_asked{nullptr};  // hang_report/reporter.cpp: woken by a signal handler
};

// A library with more globals puts these into its own object and defines this function.
Globals& globals() noexcept;

}  // namespace nearfield
