// Publishes the program's calls under way for hang reports (engine/hang_report). Every function is noted while it runs
// (call_scope.hpp); only a call that waits long, or goes to the host, is described.
#pragma once
#include <cstdint>

#include "engine/hang_report/call_post.hpp"

namespace nearfield::team {
class Team;
}

namespace nearfield::mpi {

namespace calls {

// Returns a description of what this thread's innermost call, or the request that it makes, waits for.
hang_report::Item item_of_call();
// Notes that the innermost call is about to block in the host.
void note_host();
// Returns the name of a function, such as "MPI_Send".
const char* name(unsigned function);
// Makes this process part of hang reports. `base`: the team of the node's processes; nullptr: we are alone, or share no
// memory.
void begin_hang_reports(team::Team* base);

}  // namespace calls
}  // namespace nearfield::mpi
