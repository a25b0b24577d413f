// What others are told of the calls of the program that are under way (engine/hang_report). Every function notes itself
// for as long as it runs (calling.hpp); only a call that waits long, or goes to the host, is described.
#pragma once
#include <cstdint>

#include "engine/hang_report/call_post.hpp"

namespace nearfield::team {
class Team;
}

namespace nearfield::mpi {

namespace calls {

// What the innermost call of this thread has been given, as one thing that it, or the request it makes, waits for.
hang_report::Item item_of_call();
// It is about to block in the host.
void note_host();
// "MPI_Send"
const char* name(unsigned function);
// From now on this process is seen. `base`: the team of the node's processes, nullptr: we are alone, or they share no
// memory.
void begin_hang_reports(team::Team* base);

}  // namespace calls
}  // namespace nearfield::mpi
