#!/bin/bash
# A batch job under Nearfield: sbatch packaging/slurm/job.sh ./program [ARGUMENT...]
#
# Checked with Slurm 22.05.8 on one node: by srun (pmi2 for MPICH, pmix for Open MPI 5), by the mpiexec of both, by
# salloc, and by `nearfield env` and `nearfield exec`, as below.
#SBATCH --nodes=1
#SBATCH --ntasks=2
#SBATCH --time=00:10:00
set -eu

# MPICH and its relatives; Open MPI 5 wants --mpi=pmix. `srun --mpi=list` names what this Slurm has.
: "${PMI:=pmi2}"

# One of these ways. The first says at the end whether the program was served, and by --stats what was done.
nearfield run --stats srun --mpi="$PMI" "$@"

#   nearfield run mpiexec "$@"                                # the MPI library's own launcher
#   eval "$(nearfield env)"; srun --mpi="$PMI" "$@"           # where lines of other programs must stay as they are
#   srun --mpi="$PMI" --export=NONE "$(command -v nearfield)" exec "$@"    # where srun loses the environment
