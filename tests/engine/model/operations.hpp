// What members do with the further contexts of a team (engine/context/pool.hpp) in models: scripts of calls, each
// member's its own, over operations whose bodies are the engine's pieces.
//
//   i3   issues operation 3, as the next one of the team: all members issue the same ones in one order
//   p3   plans operation 3: reserves a context of its own, as a call of the first context
//   s3   starts operation 3, which is planned; again and again
//   w3   looks until it is complete, and progresses all that this process has under way (MPI_Test)
//   m3   waits until it is complete, and sleeps (MPI_Wait); needs a messenger
//   b3   runs operation 3 as a call that returns when it is done, in the first context
#pragma once
#include <functional>
#include <string_view>
#include <vector>

#include "engine/context/pool.hpp"
#include "tests/engine/model/members.hpp"

namespace nearfield::testing {

// The body of the `time`-th start of an operation; `number` tells both: the same on all members, never 0.
using Operate = std::function<void(context::CollectiveContext& context, int me, std::uint64_t number)>;

struct Play {
  Operate operate;
  std::vector<std::string_view> scripts;      // of each member; one: all members'
  std::vector<std::string_view> before = {};  // the same, played first, without exploring
};

// Explores the scripts. Every operation has to end without an error.
Explored explore_play(Members& members, const Play& play, const Options& options = {});

// ---- bodies
// What a member gives to an operation.
inline std::uint64_t given(int member, std::uint64_t number) { return number << 8 | unsigned(member + 1); }
// Everybody gives and reads, by slots.
void by_slots(context::CollectiveContext& context, int me, std::uint64_t number);
// Member `root` gives, the others read.
void by_root(context::CollectiveContext& context, int me, std::uint64_t number, int root);

}  // namespace nearfield::testing
