// Work that members do together, for teams with a gate: once all have arrived, running members do parts of it until
// none is left; all leave when all parts are done. Sleeping members are woken for the parts, if there are several, and
// when all parts are done.
//
//   all members       publish what others need, add one to the gate
//   the last of them  parts = round << 32 | their number << 16
//   running members   take a part (compare-and-swap on parts), do it, add one to `done`; until none is left
//   all members       leave when `done` has reached the sum of all rounds' parts so far
//
// No member arrives in round n + 1 before it has left round n; it ignores `parts` with another round's number.
#pragma once
#include "engine/context/connector.hpp"

namespace nearfield::context {

class SharedWork {
 public:
  SharedWork(const ContextMembers& members, Waits& waits, Barrier& barrier, const Ticks& ticks)
      : members_(members), waits_(waits), barrier_(barrier), ticks_(ticks) {}
  // Collective, after Ticks::post_empty(). Wrong programs come with different numbers of parts: the last member's
  // counts.
  void run(std::size_t parts, FunctionRef<void(std::size_t part)> work);
  std::uint64_t round() const { return round_; }

 private:
  const ContextMembers& members_;
  Waits& waits_;
  Barrier& barrier_;
  const Ticks& ticks_;
  std::uint64_t round_ = 0, done_target_ = 0;
};

}  // namespace nearfield::context
