// What a hang report says: a line for each group of processes in the same state, and what seems to be wrong.
#pragma once
#include <string>
#include <vector>

#include "engine/hang_report/call_post.hpp"

namespace nearfield::hang_report {

// A thread of a process as it was found.
struct ThreadSeen {
  std::uint64_t call = 0;  // CallPost::call
  double unchanged = 0;    // seconds since when it has been that, at least
  bool told = false;       // what is waited for is known:
  CallState what{};
};

// A process.
struct Attendance {
  enum class State : std::uint8_t { here, left, dead };
  int rank = 0;  // in MPI_COMM_WORLD
  long process = 0;
  State state = State::here;
  std::vector<ThreadSeen> threads;  // that have called MPI
  int unseen = 0;                   // more of them, which have no post
};

// `now`: CLOCK_MONOTONIC, ns. `name`: of a function.
std::vector<std::string> report(const std::vector<Attendance>& all, std::uint64_t now, const char* (*name)(unsigned));

}  // namespace nearfield::hang_report
