// Finds out whether all ranks of a job run Nearfield, before our first collective call.
//
// That call is made in MPI_Init. A rank that runs without Nearfield (a static program, another program of the job, a
// wrapper that clears the environment) never joins it, or joins by a call of its own. So ranks announce themselves by
// name (engine/team/presence.hpp) before the host's MPI_Init, which synchronises, and look for all names after it:
// if one is missing, all stay out and the host serves the whole job.
//
// The answer is the same on all ranks (law 1 of docs/dev/architecture.md) if they share a node, which the launcher's
// variables say, as they name the job. Otherwise a rank that has waited long in that first call looks for processes of
// its job that run without Nearfield, and ends the job with an error that names them.
#pragma once
#include <cstdint>

namespace nearfield::mpi {

// Called before the host's MPI_Init, or before the first session if that comes first.
void announce_presence();
// Called when a session begins before MPI_Init, which then may not synchronise: absent ranks cannot be distinguished
// from late ones.
void announce_before_session();
// pre: the host's MPI_Init has returned. Returns whether a rank of a job on one node certainly runs without Nearfield,
// and logs it once.
bool ranks_are_absent(int rank, int size);
// Called in the first collective call after a wait of that many nanoseconds: ends the job if ranks run without
// Nearfield.
void look_for_absentees(int rank, int size, std::uint64_t waited);

}  // namespace nearfield::mpi
