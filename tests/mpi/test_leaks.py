"""Calls that are made again and again leave nothing behind in a rank's memory, as the C library counts it."""

import pytest

from tests.mpi.jobs import SANITIZED, hosts, launch, python_of
from tests.mpi.scenario_jobs import good_scenarios

pytestmark = pytest.mark.skipif(SANITIZED, reason="the sanitizer counts on its own malloc")

PROGRAM = """
import ctypes, gc, sys
import numpy as np
from mpi4py import MPI

comm, other = MPI.COMM_WORLD, 1 - MPI.COMM_WORLD.rank
out, into = np.zeros(400, "u1"), np.zeros(400, "u1")

class Info(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]

mallinfo = ctypes.CDLL(None).mallinfo2
mallinfo.restype = Info

def matched():
    sent = comm.Isend(out, other)
    comm.Mprobe(other).Recv(into)
    sent.Wait()

def looked_for():
    sent = comm.Issend(out, other)
    while not (message := comm.Improbe(other)):
        pass
    message.Irecv(into).Wait()
    sent.Wait()

def persistent():
    both = [comm.Recv_init(into, other), comm.Ssend_init(out, other)]
    for _ in range(2):
        MPI.Prequest.Startall(both)
        MPI.Request.Waitall(both)
    for request in both:
        request.Free()

def types():
    column = MPI.BYTE.Create_vector(20, 3, 7).Commit()
    comm.Sendrecv([out, 2, column], other, recvbuf=[into, 2, column], source=other)
    column.Free()

def reductions():
    op = MPI.Op.Create(lambda a, b, _: None, commute=False)
    comm.Allreduce([out, MPI.BYTE], [into, MPI.BYTE], op)
    op.Free()

def overlapping():
    comm.Iallgather(out[:200], into).Wait()

work = globals()[sys.argv[1]]
held = []
for round in range(4):
    for _ in range(1000):
        work()
    gc.collect()
    info = mallinfo()
    held.append(info.uordblks + info.hblkhd)
grown = comm.reduce(held[-1] - held[-2], MPI.MAX)
if comm.rank == 0:
    print("grown", grown, flush=True)
"""
ROOM = 8000  # bytes in a thousand calls: what is kept for later may still grow


@pytest.mark.parametrize(
    "work", ["matched", "looked_for", "persistent", "types", "reductions", "overlapping"]
)
@pytest.mark.parametrize("host", hosts("mpich"))
def test_a_thousand_calls_leave_nothing(host: str, work: str) -> None:
    job = launch(host, 2, [python_of(host), "-c", PROGRAM, work], timeout=100)
    assert job.returncode == 0 and job.stdout.startswith("grown "), job.text[-3000:]
    assert int(job.stdout.split()[1]) < ROOM


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_memory_of_mpi_comes_when_it_is_touched(host: str, ranks: int) -> None:
    good_scenarios(host, ranks, "untouched_memory")
