// Text of a hang report: a line for each group of processes in the same state, and what seems to be wrong.
#pragma once
#include <string>
#include <vector>

#include "engine/hang_report/call_post.hpp"

namespace nearfield::hang_report {

struct ThreadSeen {
  std::uint64_t call = 0;  // CallPost::call
  double unchanged = 0;    // seconds for which `call` has been the same, at least
  bool known = false;      // `what` is filled in
  CallState what{};
};

// A process.
struct ProcessSeen {
  enum class State : std::uint8_t { here, left, dead };
  int rank = 0;  // in MPI_COMM_WORLD
  long process = 0;
  State state = State::here;
  std::vector<ThreadSeen> threads;  // that have called MPI
  int unseen = 0;                   // number of threads that have called MPI and have no post
};

// Returns the lines of the report. `now`: CLOCK_MONOTONIC, ns. `name`: returns a function's name.
std::vector<std::string> report(const std::vector<ProcessSeen>& all, std::uint64_t now, const char* (*name)(unsigned));

}  // namespace nearfield::hang_report
