// Whether all ranks of a job run with Nearfield, before the first collective call of ours.
//
// That call is made in MPI_Init. A rank that runs without Nearfield (a static program, another program of the job, a
// wrapper that clears the environment) never joins it, or joins by a call of its own. So ranks announce themselves by
// name (engine/team/presence.hpp) before the host's MPI_Init, which synchronises, and look for all names after it:
// where one is missing, all stay out and the host serves the whole job.
//
// The answer is the same on all ranks (law 1 of docs/architecture.md) where they share a node, which the launcher
// tells, as it tells what names the job. Elsewhere, and where a launcher tells nothing, a rank that has waited long in
// that first call looks for processes of its job that run without Nearfield, and ends the job with an error that names
// them.
#pragma once
#include <cstdint>

namespace nearfield::mpi {

// Before the host's MPI_Init, or the first session before that.
void announce_presence();
// A session begins before MPI_Init, which then may not synchronise, since the host is up already: this rank cannot tell
// who is absent from who has not come that far.
void announce_before_session();
// After it: whether some rank of a job on one node is certainly not going to take part; says so once.
bool ranks_are_absent(int rank, int size);
// In the first collective call, after a wait of so many nanoseconds: ends the job if ranks run without Nearfield.
void look_for_absentees(int rank, int size, std::uint64_t waited);

}  // namespace nearfield::mpi
