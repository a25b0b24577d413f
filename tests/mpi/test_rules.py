"""Rules of messages that random programs seldom come to, since who looks is late, or the partner always the same."""

from pathlib import Path

import pytest

from tests.mpi.jobs import hosts, launch, python_of

HEAD = """
import os, sys, time
import numpy as np
from mpi4py import MPI
comm, me, other = MPI.COMM_WORLD, MPI.COMM_WORLD.rank, 1 - MPI.COMM_WORLD.rank
data, status = np.zeros(1, "i8"), MPI.Status()
"""
PROGRAMS = {
    # Each message is sent after its receiver has begun to look for it.
    "a-probe-that-waits-takes-nothing": """
for k in range(50):
    data[0] = k
    if me == 0:
        comm.Recv(np.zeros(1, "i8"), other)
        time.sleep(0.002)
        comm.Send(data, other, tag=k)
    else:
        comm.Send(data, other)
        comm.Probe(MPI.ANY_SOURCE, MPI.ANY_TAG, status)
        assert status.tag == k and comm.Iprobe(other, k)
        comm.Recv(data, other, k)
        assert data[0] == k
""",
    "a-persistent-receive-from-anybody-is-from-anybody-again": """
receive = comm.Recv_init(data, MPI.ANY_SOURCE, MPI.ANY_TAG)
for k in range(6):
    source = (me + k) % 2  # the other, or itself
    receive.Start()
    sent = comm.Isend(np.full(1, 10 * me + k), (me - k) % 2, tag=k)
    receive.Wait(status)
    sent.Wait()
    assert (data[0], status.source, status.tag) == (10 * source + k, source, k)
    comm.Barrier()
receive.Free()
""",
    # While the receiver is outside of MPI there is no room for the long ones, but for the short ones between them.
    "short-messages-do-not-overtake-long-ones-that-wait-for-room": """
if me == 0:
    messages = [np.full(60 if k % 3 else 1, k) for k in range(3000)]
    sent = [comm.Isend(message, other) for message in messages]
    open(sys.argv[1], "w").close()
    MPI.Request.Waitall(sent)
else:
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.001)
    for k in range(3000):
        into = np.zeros(60, "i8")
        comm.Recv(into, other)
        assert into[0] == k, (into[0], k)
""",
}


@pytest.mark.parametrize("rule", PROGRAMS)
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_a_rule_holds(host: str, rule: str, tmp_path: Path) -> None:
    text = HEAD + PROGRAMS[rule] + "print('good', flush=True)"
    program = [python_of(host), "-m", "mpi4py", "-c", text, str(tmp_path / "all-sent")]
    job = launch(host, 2, program, timeout=60)
    assert not job.timed_out and job.stdout.count("good") == 2, job.text[-3000:]
