"""Collectives of communicators of one rank (MPI_COMM_SELF and others) against the host's own results and errors."""

import re
import subprocess

import pytest

from tests.mpi.jobs import PROGRAMS, SCRATCH, carried, compile_c, hosts, launch, python_of

ALL = ("mpich", "openmpi", "impi", "debian-mpich", "debian-openmpi")
STATS = {"NEARFIELD_STATS": "1"}


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("host", hosts(*ALL))
def test_they_equal_the_hosts(host: str, ranks: int) -> None:
    job = launch(host, ranks, [compile_c(host, "alone.c", "-ldl"), "results"], env=STATS, timeout=120)
    found = re.findall(r"(\d+) compared, 0 wrong", job.stdout)
    assert len(found) == ranks and all(int(n) > 10000 for n in found), job.text[-4000:]
    assert carried(job, "allreduce") > 500 and carried(job, "alltoallv") > 500, job.text[-4000:]
    assert "not on one node" not in job.stderr, job.text[-4000:]  # the host was asked for by the hint alone


@pytest.mark.parametrize("host", hosts(*ALL))
def test_wrong_arguments_give_the_hosts_errors(host: str) -> None:
    program = [compile_c(host, "alone.c", "-ldl"), "errors"]
    plain = launch(host, 1, program, nearfield=False)
    ours = launch(host, 1, program, timeout=20)
    assert plain.stdout.count("works afterwards: 0") == 3, plain.text[-3000:]
    assert ours.stdout == plain.stdout


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_device_memory(host: str) -> None:
    library = SCRATCH / "alone" / "libcuda.so.1"
    library.parent.mkdir(parents=True, exist_ok=True)
    source = PROGRAMS / "fake_cuda.c"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", str(source), "-o", str(library)], check=True)
    job = launch(host, 1, [compile_c(host, "alone.c", "-ldl"), "devices", str(library)], timeout=30)
    assert job.returncode == 0 and "0 failed" in job.stdout, job.text[-3000:]


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
    job = launch(host, ranks, [python_of(host), "-c", WINDOWS], env=STATS)
    assert job.returncode == 0, job.text[-3000:]
    assert re.search(r"windows +6 served, 0 left to the host", job.stderr), job.text[-3000:]
