// Finds out whether all ranks of a job run Nearfield, before our first collective call.
//
// That call is made in MPI_Init. A rank that runs without Nearfield (a static program, another program of the job, a
// wrapper that clears the environment) never joins the call, or its own first collective call is taken for it. So ranks
// bind sockets with their names (engine/team/presence.hpp) before the host's MPI_Init, which synchronises them, and
// look for all names after it. If a name is missing, no rank uses Nearfield and the host serves the whole job.
//
// The answer is the same on all ranks (law 1 of docs/dev/architecture.md) if they share a node; the launcher's
// variables tell that, and name the job. Otherwise a rank that has waited long in that first call looks for processes
// of its job that run without Nearfield, and ends the job with an error that names them.
#pragma once
#include <cstdint>

namespace nearfield::mpi {

// Called before the host's MPI_Init, or before the first session if that comes first.
void announce_presence();
// Called when a session begins before MPI_Init. Then the host's MPI_Init may not synchronise the ranks, so that we
// cannot distinguish absent ranks from late ones.
void announce_before_session();
// pre: the host's MPI_Init has returned. Returns whether a rank of a job on one node certainly runs without Nearfield,
// and logs it once.
bool ranks_are_absent(int rank, int size);
// Called in the first collective call after a wait of that many nanoseconds: ends the job if ranks run without
// Nearfield.
void look_for_absentees(int rank, int size, std::uint64_t waited);

}  // namespace nearfield::mpi
