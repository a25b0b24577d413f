"""Calls that stay the host's: messages go on meanwhile, they are counted, and handles of both kinds mix."""

from pathlib import Path

import pytest

from tests.mpi.jobs import EVERYTHING, WHILE_DEFERRED, carried, hosts, launch, python_of
from tests.mpi.scenario_jobs import good_scenarios

# What the hosts' own library cannot do here: MPICH aborts without fault tolerance, and Open MPI does not progress messages
# while it makes a communicator from a group.
NOT_TRIED = {"mpich": {"shrink", "agree"}, "debian-mpich": {"shrink", "agree"}}
CALLS = [
    *("session", "shrink", "agree", "at_all_c", "all_c", "ordered", "split", "file_state"),
]


# Each call is made once, on communicators of its own as well.
ONCE = EVERYTHING.but(WHILE_DEFERRED)


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "debian-mpich", "debian-openmpi"))
def test_messages_go_on_while_the_host_blocks(host: str, ranks: int, tmp_path: Path) -> None:
    calls = [call for call in CALLS if call not in NOT_TRIED.get(host, set())]
    calls += ["comm_create_from_group"] if host == "mpich" else []
    scenario = f"host_waits {tmp_path}/file {' '.join(calls)}"
    # What each call has come to, "good", "wrong" or "lacking".
    expected, found = (
        dict(
            line.split(": ")
            for line in good_scenarios(host, ranks, scenario, nearfield=nearfield, served=ONCE)[0].lines
        )
        for nearfield in (False, True)
    )
    assert set(found) == set(calls)
    for call, outcome in found.items():
        # Large-count forms work on every host; what else a host cannot do it still cannot.
        assert outcome == "good" or (outcome == expected[call] and not call.endswith("_c")), (call, found)


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_handles_of_both_kinds(host: str, ranks: int) -> None:
    scenarios = ["handles_complete", "handles_buffers"]
    scenarios += ["handles_created"] if host != "mpich" else []  # MPICH of PyPI checks few arguments
    # One communicator is the host's.
    good_scenarios(host, ranks, *scenarios, served=EVERYTHING.but("messages", WHILE_DEFERRED))


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_first_use_by_several_threads(host: str) -> None:
    good_scenarios(host, 2, "first_use 300", threads=True)


# MPICH crashes and hangs by itself when threads use a session beside a world of one thread.
@pytest.mark.parametrize("host", hosts("openmpi"))
def test_first_use_by_a_thread_of_a_session(host: str) -> None:
    good_scenarios(host, 2, "first_use_session 5000")


SERVED = """
import ctypes
from mpi4py import MPI
import numpy as np
comm = MPI.COMM_WORLD
last = ctypes.CDLL(None).nearfield_last_algorithm
last.restype = ctypes.c_char_p
one, all = np.ones(1), np.ones(comm.size)
for _ in range(3):
    comm.Allreduce(one, one.copy())
    by = [last()]
    comm.Dup().Free()
    comm.Alltoallv([all, [1] * comm.size], [all.copy(), [1] * comm.size])
    by.append(last())
    comm.Alltoallw([all, [1] * comm.size, range(0, 8 * comm.size, 8), [MPI.DOUBLE] * comm.size],
                   [all.copy(), [1] * comm.size, range(0, 8 * comm.size, 8), [MPI.DOUBLE] * comm.size])
    by.append(last())
info = MPI.Info.Create({"nearfield": "off"})
comm.Set_info(info)
comm.Alltoallv([all, [1] * comm.size], [all.copy(), [1] * comm.size])
by.append(last())
if comm.rank == 0:
    print(*by, flush=True)
"""


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_what_goes_to_the_host_is_counted(host: str) -> None:
    job = launch(host, 2, [python_of(host), "-c", SERVED], served=EVERYTHING.but("alltoallv"))
    words = [line for line in job.stdout.splitlines() if "host" in line][0].split()
    assert words[0] != "b'host'" and words[1:] == ["b'messages'", "b'messages'", "b'host'"], job.text
    assert carried(job, "alltoallv") == carried(job, "alltoallw") == 3, job.text
    first = job.statistics[0]
    varying = first.operations["alltoallv"]
    assert (varying.calls, varying.bytes, varying.to_the_host) == (4, 48, 1), job.statistics
    assert varying.why == {"switched off": 1} and varying.seconds > 0, job.statistics
    assert first.functions["MPI_Comm_dup"].calls == 3, job.statistics
