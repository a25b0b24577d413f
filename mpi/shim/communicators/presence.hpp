// Who of a job takes part in Nearfield's start, found out without any call that a rank without Nearfield would spoil.
//
// The first collective call of ours is made in MPI_Init. A rank that runs without Nearfield (a static program, another
// program of the job, a wrapper that clears the environment) never joins it, or joins by a call of its own. So:
//
//   every rank   before the host's MPI_Init   binds an abstract socket, named by job and rank
//                after it                     looks for the names of all ranks
//                all are there                the collective start
//                else                         stays out: the host serves the whole job
//
// The host's MPI_Init synchronises, so whoever has left it sees the name of every rank that will ever have one. All
// ranks come to the same answer: names are kept until the process ends, and none sees all unless all see all (they
// share job and network namespace). That holds where all ranks live on one node, which the launcher tells. Elsewhere,
// and where a launcher tells nothing, a rank that has waited long in that first call looks for processes of its job
// that run without Nearfield, and ends the job with an error that names them.
//
// Another user who binds such a name hides an absent rank at worst.
#pragma once
#include <cstdint>

namespace nearfield::mpi {

// Before the host's MPI_Init.
void announce_presence();
// After it: whether some rank of a job on one node is certainly not going to take part; says so once.
bool ranks_are_absent(int rank, int size);
// In the first collective call, after a wait of so many nanoseconds: ends the job if ranks run without Nearfield.
void look_for_absentees(int rank, int size, std::uint64_t waited);

}  // namespace nearfield::mpi
