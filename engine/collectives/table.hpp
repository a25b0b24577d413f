// The table of all algorithms. An algorithm is one function and one row; the chooser, the overrides, the command
// line, the tests and the benchmark iterate this table.
#pragma once
#include <span>

#include "engine/collectives/call.hpp"
#include "engine/context/context.hpp"

namespace nearfield::collectives {

// Buffers of every member that its peers must be able to load or store.
enum Reach : std::uint8_t { staged = 0, send_buffers = 1, recv_buffers = 2, all_buffers = 3 };

using team::Shape;

// The function that each member runs. `ready`, for a member that only gives: returns whether it can do its part now
// without waiting for late members (choosing/leaving.hpp); nullptr: never.
struct RowBody {
  using Run = void (*)(context::CollectiveContext&, const Call&);
  using Ready = bool (*)(context::CollectiveContext&, const Call&);
  constexpr RowBody(Run run, Ready ready = nullptr) : run(run), ready(ready) {}
  void operator()(context::CollectiveContext& context, const Call& call) const { run(context, call); }
  Run run;
  Ready ready;
};

struct Algorithm {
  const char* name;
  Collective collective;
  bool (*applies)(const Shape&, const Call&);
  double (*cost)(const Shape&, const Call&);  // estimated nanoseconds (costs.hpp)
  RowBody run;                                // called by collectives::run
  const char* about;
  Reach reach = staged;
  // Instead of `run`: does the shares of ranks [first, last), on whichever member runs (context/shared_work.hpp).
  void (*share)(context::CollectiveContext&, const Call&, int first, int last) = nullptr;
  // Returns whether a call may be worth a trial of this row (tuning/selector.hpp); nullptr: always.
  bool (*worth)(const Shape&, const Call&) = nullptr;
  // Lines that move between the caches of a rank and its peers and have to move back later (choosing::left_behind), as
  // a multiple of those of its send buffer. Results that a peer has stored and that are only read later count less.
  double taken = 1;
};

// Runs an algorithm. False, on all members: it needs buffers that are out of reach, and nothing has been moved.
bool run(context::CollectiveContext& context, const Algorithm& algorithm, const Call& call);

// NEARFIELD_CHECK: compares the calls of all members; throws team::Broken naming two that differ.
void compare_calls(context::CollectiveContext& context, const Call& call);

// Returns all rows of one collective; of equal estimates the first counts.
std::span<const Algorithm> algorithms(Collective collective);

// One file per collective offers its rows.
#define OPERATION(name, ...) std::span<const Algorithm> name##_rows();
#define OF_MESSAGES(name, ...)
#include "engine/collectives/operations.def"

}  // namespace nearfield::collectives
