"""The roll call: programs that hang, each for a reason of its own, and what the report must say of it."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.mpi.jobs import compile_c, hosts, launch, python_of

BOTH = hosts("mpich", "openmpi")
OUTSIDE = "is outside of MPI, last in MPI_Barrier"

# Scenarios of rollcall.c, on how many ranks, and what must be in the report.
FAULTS = {
    "computes": (3, [r"ranks 0, 2 wait in MPI_Barrier on MPI_COMM_WORLD; rank 1 " + OUTSIDE]),
    "exits": (
        3,
        [r"ranks 0, 2 wait in MPI_Allreduce on MPI_COMM_WORLD; rank 1 " + OUTSIDE, "Allreduce of 4 bytes"],
    ),
    "finalizes": (2, [r"rank 0 waits in MPI_Recv .* from rank 1, tag 5.*; rank 1 has called MPI_Finalize"]),
    "operation": (2, [r"mismatch on MPI_COMM_WORLD: rank 0 calls MPI_Bcast, rank 1 MPI_Barrier"]),
    "root": (2, [r"mismatch on MPI_COMM_WORLD: rank 0 calls MPI_Bcast with root 1, rank 1 with root 0"]),
    "count": (2, [r"mismatch on MPI_COMM_WORLD: rank 0 calls MPI_Allreduce of 16 bytes, rank 1 of 4194304"]),
    "one barrier": (
        2,
        [
            r"rank 1 waits in MPI_Recv .*tag 7.*; rank 0 waits in MPI_Barrier on MPI_COMM_WORLD",
            "deadlock: ranks 0, 1",
        ],
    ),
    "missing send": (
        2,
        [r"rank 0 waits in MPI_Recv for a message of 4 bytes from rank 1, tag 5, .*; rank 1 " + OUTSIDE],
    ),
    "tag": (
        2,
        [
            r"rank 0 waits in MPI_Recv .*tag 5.*; a message with tag 6 has come from it, which nothing receives"
        ],
    ),
    "communicator": (
        2,
        [r"a message with tag 5 has come from it on another communicator, which nothing receives"],
    ),
    "both send": (
        2,
        [
            r"rank 0 waits in MPI_Send until its message of 4194304 bytes to rank 1, tag 3",
            "deadlock: ranks 0, 1 wait for each other",
        ],
    ),
    "both receive": (
        2,
        [r"rank 0 waits in MPI_Recv .* from rank 1, tag 3", "deadlock: ranks 0, 1 wait for each other"],
    ),
    "circle": (
        3,
        [
            r"rank 2 \(process \d+\) waits in MPI_Ssend of 4 bytes to rank 0, tag 3",
            "deadlock: ranks 0-2 wait for each other",
        ],
    ),
    "sendrecv": (
        2,
        [
            r"a message with tag 4 has come from it",
            r"and a receive of 4 bytes from rank 1, tag 9",
            "deadlock",
        ],
    ),
    "sent": (2, [r"ranks? .* MPI_Sendrecv for a message of 4 bytes from rank [01], tag 2", "deadlock"]),
    "waitall": (
        2,
        [
            r"rank 0 .* waits in MPI_Waitall for MPI_Irecv of 4 bytes from rank 1, tag 2, on MPI_COMM_WORLD",
            "deadlock",
        ],
    ),
    "waitany": (
        3,
        [
            r"MPI_Irecv of 4 bytes from rank 1, tag 1.*; MPI_Irecv of 4 bytes from rank 2, tag 2",
            r"rank 2 " + OUTSIDE,
        ],
    ),
    "any source": (
        3,
        [r"rank 0 .* waits in MPI_Recv of 4 bytes from any rank, tag 1", r"ranks 1, 2 wait in MPI_Barrier"],
    ),
    "probe": (
        2,
        [
            r"rank 0 waits in MPI_Probe for a message from rank 1, tag 12, on MPI_COMM_WORLD; rank 1 "
            + OUTSIDE
        ],
    ),
    "ibarrier": (
        3,
        [
            r"ranks 0, 2 wait in MPI_Ibarrier on MPI_COMM_WORLD; rank 1 " + OUTSIDE,
            "wait in MPI_Wait for MPI_Ibarrier",
        ],
    ),
    "persistent": (2, [r"waits in MPI_Wait for MPI_Recv_init from rank 1, tag 15", "rank 1 " + OUTSIDE]),
    "split": (4, [r"rank 0 waits in MPI_Barrier on even ones of 2 ranks; rank 2 " + OUTSIDE]),
    "fence": (2, [r"rank 0 waits in MPI_Win_fence; rank 1 is outside of MPI, last in MPI_Win_allocate"]),
    "lock": (2, [r"rank 0 waits in MPI_Win_lock; rank 1 " + OUTSIDE]),
    "tests": (
        2,
        [r"rank 0 waits in MPI_Barrier on MPI_COMM_WORLD; rank 1 goes on calling MPI, lastly MPI_Test"],
    ),
    "host": (2, [r"rank 1 is in the host's part of MPI_File_open on MPI_COMM_SELF"]),
}


def report(host: str, ranks: int, arguments: list[str], env: dict[str, str] | None = None) -> str:
    """What is reported of a job of rollcall.c, whose ranks end by themselves after some seconds."""
    program = [compile_c(host, "rollcall.c"), *arguments]
    env = {"NEARFIELD_STALL_SECONDS": "1"} | (env or {})
    job = launch(host, ranks, program, env=env, timeout=60)
    return job.text


@pytest.mark.parametrize("host", BOTH)
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named(host: str, fault: str, tmp_path: os.PathLike) -> None:
    ranks, wanted = FAULTS[fault]
    os.mkfifo(f"{tmp_path}/pipe")
    text = report(host, ranks, [fault, "4", f"{tmp_path}/pipe"])
    for pattern in wanted:
        assert re.search(pattern, text), text
    assert len(re.findall("roll call of", text)) == 1, text


# Of programs that are right, but late, and what must be said of them.
LEGAL = {
    "ahead": (4, [r"rank 0 waits in MPI_Reduce on MPI_COMM_WORLD; rank 3 " + OUTSIDE]),
    "roots": (4, [r"waits? in MPI_Reduce on MPI_COMM_WORLD; rank 3 " + OUTSIDE]),
    "lists": (4, [r"rank 0 waits in MPI_Gatherv on MPI_COMM_WORLD; rank"]),
    "overlapping": (3, [r"rank 0 waits in MPI_Ibarrier on MPI_COMM_WORLD; rank 2 " + OUTSIDE]),
    "thread that goes on": (
        2,
        [r"rank 1 waits in MPI_Recv .* from rank 0, tag 6", "while another thread of it does not wait"],
    ),
    "threads": (2, [r"waits in MPI_Recv .* tag 5, .*, while 4 other threads of it do not wait"]),
}


@pytest.mark.parametrize("host", BOTH)
@pytest.mark.parametrize("program", LEGAL)
def test_programs_that_are_late_are_not_said_to_be_wrong(host: str, program: str) -> None:
    ranks, wanted = LEGAL[program]
    text = report(host, ranks, [program, "4"])
    for pattern in wanted:
        assert re.search(pattern, text), text
    assert "mismatch" not in text and "deadlock" not in text, text


@pytest.mark.parametrize("host", BOTH)
def test_a_rank_of_another_node_is_named(host: str) -> None:
    where = 'r=${PMI_RANK:-$OMPI_COMM_WORLD_RANK}; export NEARFIELD_NODE=n$((r / 2)); exec "$0" "$@"'
    program = ["sh", "-c", where, compile_c(host, "rollcall.c"), "from afar", "4"]
    env = {"NEARFIELD_STALL_SECONDS": "0", "NEARFIELD_STALL_SIGNAL": "USR2"}
    text = launch(host, 4, program, env=env, timeout=60).text
    assert re.search(r"rank 0 \(process \d+\) is in the host's part of MPI_Recv from rank 3, tag 3", text), (
        text
    )


def test_places_are_named() -> None:
    text = report("mpich", 2, ["missing send", "5"])
    assert re.search(r"called at \S*rollcall-mpich\S*\+0x[0-9a-f]+", text), text


def test_places_are_named_whatever_paths_and_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "a directory" / "its program"
    program.parent.mkdir()
    shutil.copy(compile_c("mpich", "rollcall.c"), program)
    monkeypatch.chdir(program.parent)
    env = {"NEARFIELD_STALL_SECONDS": "1"}
    text = launch("mpich", 2, ["./its program", "elsewhere", "4"], env=env, timeout=60).text
    assert re.search(rf"called at {program}\+0x[0-9a-f]+", text), text
    if shutil.which("addr2line"):
        assert re.search(rf"{program}\+0x[0-9a-f]+: receive at .*rollcall\.c:\d+", text), text


@pytest.mark.parametrize("host", BOTH)
def test_a_signal_calls_the_roll(host: str) -> None:
    text = report(
        host, 2, ["signal", "4"], {"NEARFIELD_STALL_SECONDS": "0", "NEARFIELD_STALL_SIGNAL": "USR2"}
    )
    assert re.search(r"by rank \d: asked by a signal", text), text
    assert re.search(r"rank 0 .*MPI_Barrier", text) and len(re.findall("roll call of", text)) == 1, text


@pytest.mark.parametrize("name", ["NONE", "11", "9"])
def test_a_bad_signal_is_refused(name: str) -> None:
    text = report("mpich", 2, ["computes", "2"], {"NEARFIELD_STALL_SIGNAL": name})
    assert f"NEARFIELD_STALL_SIGNAL={name} calls no roll: it names no signal" in text


PYTHON = """
import os, threading, time
from mpi4py import MPI
world = MPI.COMM_WORLD
world.Barrier()
threading.Thread(target=lambda: (time.sleep(5), os._exit(3)), daemon=True).start()
if world.rank == 1:
    time.sleep(30)
world.Barrier()
"""


@pytest.mark.parametrize("host", hosts("mpich"))
def test_lines_of_python_are_named(host: str, tmp_path: os.PathLike) -> None:
    program = tmp_path / "stalls.py"
    program.write_text(PYTHON)
    job = launch(host, 2, [python_of(host), str(program)], env={"NEARFIELD_STALL_SECONDS": "1"}, timeout=60)
    if sys.version_info >= (3, 13):
        pytest.skip("this interpreter keeps its frames to itself")
    assert re.search(r'stalls\.py", line 9 in <module>', job.stderr), job.text
