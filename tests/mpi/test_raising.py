"""Errors that Nearfield raises: the job waits for its launcher to forward the reason only where it is aborted."""

import re

import pytest

from tests.mpi.jobs import (
    AT_ONCE,
    HEAP,
    LIBRARY,
    PROGRAMS,
    UNKNOWN,
    Completed,
    compile_library,
    hosts,
    launch,
    python_of,
)

RAISES = """
import sys
from mpi4py import MPI
comm, handler = MPI.COMM_WORLD, getattr(MPI, sys.argv[1])
window = MPI.Win.Allocate(64, 8, comm=comm)
for on in (comm, window):
    on.Set_errhandler(handler)
classes = set()
for target in range(20):
    for wrong in (
        lambda: comm.Set_info(MPI.Info.Create({"nearfield": "perhaps"})),
        lambda: window.Put([bytearray(8), MPI.BYTE], 0, (99, 8, MPI.BYTE)),
    ):
        try:
            wrong()
        except MPI.Exception as error:
            classes.add(error.Get_error_class())
if comm.rank == 0:
    print("raised", len(classes) > 0, flush=True)
window.Free()
"""


def raising(host: str, handler: str) -> Completed:
    """Runs a program whose calls of its communicator and its window are wrong, and counts sleeps."""
    counter = compile_library(PROGRAMS / "sleeps.c", "sleeps.so")
    env = {"LD_PRELOAD": f"{counter}:{LIBRARY}:{HEAP}"}
    return launch(host, 2, [python_of(host), "-c", RAISES, handler], env=env)


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_errors_that_return_cost_no_sleep(host: str) -> None:
    job = raising(host, "ERRORS_RETURN")
    assert job.returncode == 0 and "raised True" in job.stdout, job.text
    assert "usleep" not in job.stderr, job.text


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_errors_that_abort_tell_why(host: str) -> None:
    job = raising(host, "ERRORS_ARE_FATAL")
    assert job.returncode != 0 and "the hint nearfield is neither on nor off" in job.stderr, job.text


TRUNCATES = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
comm.Set_errhandler(MPI.ERRORS_ARE_FATAL)
if comm.rank == 0:
    comm.Send([bytearray(1000), MPI.BYTE], 1, 7)
else:
    request = comm.Irecv([bytearray(10), MPI.BYTE], 0, 7)
    request.Wait()
comm.Barrier()
"""


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_a_truncated_receive_that_aborts_tells_of_what_and_where(host: str) -> None:
    job = launch(host, 2, [python_of(host), "-c", TRUNCATES])
    assert job.returncode != 0, job.text
    why = "MPI_Wait: the message from rank 0 with tag 7 has 1000 bytes, the receive has room for 10"
    assert why in job.stderr, job.text


# Rank 1 has twelve integers for rank 0, which expects ten.
CUTS = """
import sys
import numpy as np
from mpi4py import MPI
comm, what, handler = MPI.COMM_WORLD, sys.argv[1], sys.argv[2]
comm.Set_errhandler(getattr(MPI, handler))
me, size = comm.rank, comm.size
ours, all = np.zeros(100, "i4"), np.zeros(100, "i4")
ten, places = [10] * size, [20 * rank for rank in range(size)]
sends = [12 if me == 1 and rank == 0 else 10 for rank in range(size)]
count = 12 if me == 1 else 10
received = [all, ten, places, MPI.INT]
try:
    if what == "Gatherv":
        comm.Gatherv([ours, count, MPI.INT], received, 0)
    elif what == "Igatherv":
        comm.Igatherv([ours, count, MPI.INT], received, 0).Wait()
    elif what == "Allgatherv":
        comm.Allgatherv([ours, count, MPI.INT], received)
    else:
        comm.Alltoallv([ours, sends, places, MPI.INT], received)
except MPI.Exception as error:
    print("rank", me, "raised", error.Get_error_class() == MPI.ERR_TRUNCATE, flush=True)
"""


@pytest.mark.parametrize("handler", ["ERRORS_RETURN", "ERRORS_ARE_FATAL"])
@pytest.mark.parametrize("what", ["Gatherv", "Igatherv", "Allgatherv", "Alltoallv"])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_a_part_that_is_cut_is_told_with_its_rank_and_both_lengths(
    host: str, what: str, handler: str
) -> None:
    job = launch(host, 3, [python_of(host), "-c", CUTS, what, handler], env=AT_ONCE, served=UNKNOWN)
    function = "MPI_Wait" if what == "Igatherv" else f"MPI_{what}"
    # mpi4py calls functions of large counts where the host has them.
    said = rf"nearfield: .*{function}(_c)?: rank 1 has 48 bytes, but this rank expects 40\n"
    assert re.search(said, job.stderr), job.text
    assert not re.search(rf"nearfield: .*{function}(_c)?: Message truncated", job.stderr), job.text
    if handler == "ERRORS_RETURN":
        assert job.returncode == 0 and "rank 0 raised True" in job.stdout, job.text
    else:
        assert job.returncode != 0 and "raised" not in job.stdout, job.text
