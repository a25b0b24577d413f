// The types of the counters of counts.hpp.
#pragma once
#include <atomic>
#include <cstdint>

#include "mpi/numbers.hpp"

namespace nearfield::mpi {

enum class Reason : std::uint8_t {
#define REASON(identifier, ...) identifier,
#include "mpi/statistics.def"
  count
};

struct Tally {
  std::atomic<std::uint64_t> calls, bytes, nanoseconds;
  std::atomic<std::uint64_t> host[std::size_t(Reason::count)];
};

// Calls of a function that the host always serves.
struct HostCalls {
  std::atomic<std::uint64_t> calls, nanoseconds;
};

// Counts windows, and operations on our windows.
enum class WhoseWindow : std::uint8_t { ours, communicator, reach, dynamic, count };
struct OneSidedCounts {
  std::atomic<std::uint64_t> windows[std::size_t(WhoseWindow::count)];
  std::atomic<std::uint64_t> moves, accumulates, bytes;
};

}  // namespace nearfield::mpi
