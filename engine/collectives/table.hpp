// The table of all algorithms. An algorithm is one function and one row; the chooser, the overrides, the command
// line, the tests and the benchmark iterate this table.
#pragma once
#include <span>

#include "engine/collectives/call.hpp"
#include "engine/context/context.hpp"

namespace nearfield::collectives {

// What every member's peers must be able to load and store.
enum Reach : std::uint8_t { staged = 0, send_buffers = 1, recv_buffers = 2, all_buffers = 3 };

using team::Shape;

struct Algorithm {
  const char* name;
  Collective collective;
  bool (*applies)(const Shape&, const Call&);
  double (*cost)(const Shape&, const Call&);              // estimated nanoseconds (costs.hpp)
  void (*run)(context::CollectiveContext&, const Call&);  // through collectives::run
  const char* about;
  Reach reach = staged;
  // Instead of `run`: the shares of ranks [first, last), by whoever has a CPU
  // (context::CollectiveContext::work_together).
  void (*share)(context::CollectiveContext&, const Call&, int first, int last) = nullptr;
  // Whether a call may be worth a trial of this row (tuning/trials.hpp); nullptr: any.
  bool (*worth)(const Shape&, const Call&) = nullptr;
  // Lines that a rank and its peers take from each other, by those of its send buffer (choosing::left_behind); less
  // where they are results that a peer has stored, and that are only read later.
  double taken = 1;
  // Of a member that only gives: whether it could do its part now without those who come later (choosing/leaving.hpp).
  // nullptr: never.
  bool (*ready)(context::CollectiveContext&, const Call&) = nullptr;
};
constexpr Algorithm with_ready(Algorithm row, bool (*ready)(context::CollectiveContext&, const Call&)) {
  row.ready = ready;
  return row;
}

// Runs an algorithm. False: it needs buffers that are out of reach, on all members alike; nothing has been moved.
bool run(context::CollectiveContext& context, const Algorithm& algorithm, const Call& call);

// NEARFIELD_CHECK: compares the calls of all members; throws team::Broken naming two that differ.
void compare_calls(context::CollectiveContext& context, const Call& call);

// All rows of one collective, in the order in which ties are decided.
std::span<const Algorithm> algorithms(Collective collective);

// One file per collective offers its rows.
#define OPERATION(name, ...) std::span<const Algorithm> name##_rows();
#define OF_MESSAGES(name, ...)
#include "engine/collectives/operations.def"

}  // namespace nearfield::collectives
