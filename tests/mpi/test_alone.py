"""Collectives of communicators of one rank (MPI_COMM_SELF and others) against the host's own results and errors."""

import pytest

from tests.mpi.jobs import EVERYTHING, PROGRAMS, UNKNOWN, carried, compile_library, hosts, launch, python_of
from tests.mpi.scenario_jobs import good_scenarios

ALL = ("mpich", "openmpi", "impi", "debian-mpich", "debian-openmpi")
OPERATIONS = (
    *(
        "barrier",
        "bcast",
        "reduce",
        "allreduce",
        "reduce_scatter_block",
        "scan",
        "exscan",
        "allgather",
        "alltoall",
    ),
    *("gather", "scatter", "alltoallv", "alltoallw", "allgatherv", "gatherv", "scatterv"),
)


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("host", hosts(*ALL))
def test_they_equal_the_hosts(host: str, ranks: int) -> None:
    # The host is asked for by the hint alone.
    served = EVERYTHING.but(*(f"{operation}: switched off" for operation in OPERATIONS))
    (done,) = good_scenarios(host, ranks, "alone_results", served=served)
    for operation in ("allreduce", "alltoallv"):
        assert carried(done.job, operation) > 500, done.job.text[-4000:]


@pytest.mark.parametrize("host", hosts(*ALL))
def test_wrong_arguments_give_the_hosts_errors(host: str) -> None:
    (plain,) = good_scenarios(host, 1, "alone_errors", nearfield=False)
    (ours,) = good_scenarios(host, 1, "alone_errors", timeout=20, served=UNKNOWN)
    assert plain.lines.count("works afterwards: 0") == 3, plain.job.text[-3000:]
    assert ours.lines == plain.lines


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_device_memory(host: str) -> None:
    good_scenarios(host, 1, f"alone_devices {compile_library(PROGRAMS / 'fake_cuda.c', 'libcuda.so.1')}")


WINDOWS = """
import numpy as np
from mpi4py import MPI
memory = MPI.Alloc_mem(800)
makers = [lambda c: MPI.Win.Allocate(800, 8, comm=c), lambda c: MPI.Win.Allocate_shared(800, 8, comm=c),
          lambda c: MPI.Win.Create(memory, 8, comm=c)]
for comm in (MPI.COMM_SELF, MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank)):
    for make in makers:
        win = make(comm)
        one, got = np.arange(100.0), np.zeros(100)
        win.Fence()
        win.Put(one, 0)
        win.Fence()
        win.Lock(0)
        win.Accumulate(one, 0, op=MPI.SUM)
        win.Flush(0)
        win.Get(got, 0)
        win.Unlock(0)
        assert (got == 2 * one).all()
        win.Free()
"""


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_windows_are_served(host: str, ranks: int) -> None:
    job = launch(host, ranks, [python_of(host), "-c", WINDOWS], served=EVERYTHING)
    assert job.returncode == 0 and job.statistics[0].counts["windows"] == 6, job.text[-3000:]
