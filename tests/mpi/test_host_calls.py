"""Calls that stay the host's: messages go on meanwhile, they are counted, and handles of both kinds mix."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mpi.jobs import ROOT, carried, compile_c, hosts, launch, python_of

WAITS = {"NEARFIELD_STALL_SECONDS": "10"}
# What the hosts' own library cannot do here: MPICH aborts without fault tolerance, and Open MPI does not progress messages
# while it makes a communicator from a group.
NOT_TRIED = {"mpich": {"shrink", "agree"}, "debian-mpich": {"shrink", "agree"}}
CALLS = [
    *("allgatherv_c", "gatherv_c", "scatterv_c", "reduce_scatter_c", "scan_c", "exscan_c"),
    *("neighbor_allgather_c", "neighbor_allgatherv_c", "neighbor_alltoallv_c", "neighbor_alltoallw_c"),
    *("session", "shrink", "agree", "at_all_c", "all_c", "ordered", "split", "file_state"),
]


def outcomes(text: str) -> dict[str, str]:
    """What the program found for each call."""
    return dict(re.findall(r"^(\w+): (good|wrong|lacking)", text, re.MULTILINE))


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "debian-mpich", "debian-openmpi"))
def test_messages_go_on_while_the_host_blocks(host: str, ranks: int, tmp_path: Path) -> None:
    calls = [call for call in CALLS if call not in NOT_TRIED.get(host, set())]
    calls += ["comm_create_from_group"] if host == "mpich" else []
    program = [compile_c(host, "host_waits.c", "-ldl"), str(tmp_path / "file"), *calls]
    plain = launch(host, ranks, program, nearfield=False)
    ours = launch(host, ranks, program, env=WAITS, timeout=60)
    assert not ours.timed_out and "done" in ours.stdout, ours.text[-3000:]
    expected, found = outcomes(plain.stdout), outcomes(ours.stdout)
    assert set(found) == set(calls)
    for call, outcome in found.items():
        # Large-count forms work on every host; what else a host cannot do it still cannot.
        assert outcome == "good" or (outcome == expected[call] and not call.endswith("_c")), ours.text[-3000:]


def test_every_function_of_the_hosts_is_classified() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "mpi/preload/classify.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("host", "scenario"),
    [
        pytest.param(host.values[0], scenario, marks=host.marks)
        for host in hosts("mpich", "openmpi")
        for scenario in ("births", "complete", "inactive", "buffers")
        if (host.values[0], scenario) != ("mpich", "births")  # MPICH of PyPI checks few arguments
    ],
)
def test_handles_of_both_kinds(host: str, scenario: str) -> None:
    program = [compile_c(host, "handles.c", "-ldl"), scenario]
    for ranks in (1, 2, 4):
        job = launch(host, ranks, program, env=WAITS, timeout=30)
        assert not job.timed_out and "good" in job.stdout, job.text[-3000:]


@pytest.mark.parametrize(
    ("host", "arguments"),
    [
        pytest.param(host.values[0], arguments, marks=host.marks)
        for host in hosts("mpich", "openmpi")
        for arguments in (["300"], ["5000", "session"])
        # MPICH crashes and hangs by itself when threads use a session beside a world of one thread.
        if (host.values[0], len(arguments)) != ("mpich", 2)
    ],
)
def test_first_use_by_several_threads(host: str, arguments: list[str]) -> None:
    job = launch(host, 2, [compile_c(host, "first_use.c"), *arguments], env=WAITS, timeout=60)
    assert not job.timed_out and "0 wrong" in job.stdout, job.text[-3000:]


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
    job = launch(host, 2, [python_of(host), "-c", SERVED], env={"NEARFIELD_STATS": "1"})
    words = [line for line in job.stdout.splitlines() if "host" in line][0].split()
    assert words[0] != "b'host'" and words[1:] == ["b'messages'", "b'messages'", "b'host'"], job.text
    assert carried(job, "alltoallv") == carried(job, "alltoallw") == 3, job.text
    assert re.search(r"^ +alltoallv +4 +48 +[\d.]+ +1 +switched off 1", job.stderr, re.MULTILINE), job.text
    assert re.search(r"^ +MPI_Comm_dup +3 +- +[\d.]+ +3 +always", job.stderr, re.MULTILINE), job.text
