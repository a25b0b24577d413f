// What members do with the further tracks of a team (engine/track/tracks.hpp) in models: scripts of calls, each
// member's its own, over operations whose bodies are the engine's pieces.
//
//   i3   issues operation 3, as the next one of the team: all members issue the same ones in one order
//   p3   plans operation 3: reserves a track of its own, as a call of the first track
//   s3   starts operation 3, which is planned; again and again
//   w3   looks until it is complete, and progresses all that this process has under way (MPI_Test)
//   m3   waits until it is complete, and sleeps (MPI_Wait); needs a messenger
//   b3   runs operation 3 as a call that returns when it is done, in the first track
#pragma once
#include <functional>
#include <string_view>
#include <vector>

#include "engine/track/tracks.hpp"
#include "tests/engine/model/members.hpp"

namespace nearfield::testing {

// The body of the `time`-th start of an operation; `number` tells both: the same on all members, never 0.
using Operate = std::function<void(team::Track& track, int me, std::uint64_t number)>;

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
void by_slots(team::Track& track, int me, std::uint64_t number);
// Member `root` gives, the others read.
void by_root(team::Track& track, int me, std::uint64_t number, int root);

}  // namespace nearfield::testing
