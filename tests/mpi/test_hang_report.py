"""The hang report: programs that hang, each for a reason of its own, and what the report must say of it."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.mpi.jobs import (
    NOT_LAUNCHED,
    UNKNOWN,
    command,
    compile_c,
    environment,
    hosts,
    kill_tree,
    launch,
    python_of,
)
from tests.selection import FULL

BOTH = hosts("mpich", "openmpi")
OUTSIDE = "is outside of MPI, last in MPI_Barrier"

# Scenarios of hang_report.c, on how many ranks, and what must be in the report.
FAULTS = {
    "computes": (3, [r"ranks 0, 2 wait in MPI_Barrier on MPI_COMM_WORLD; rank 1 " + OUTSIDE]),
    "finalizes": (2, [r"rank 0 waits in MPI_Recv .* from rank 1, tag 5.*; rank 1 has called MPI_Finalize"]),
    "count": (2, [r"mismatch on MPI_COMM_WORLD: rank 0 calls MPI_Allreduce of 16 bytes, rank 1 of 4194304"]),
    "missing send": (
        2,
        [
            r"rank 0 waits in MPI_Recv for a message of 4 bytes from rank 1, tag 5, .*; rank 1 " + OUTSIDE,
            r"called at \S*hang_report-\S*\+0x[0-9a-f]+",
        ],
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
    "sendrecv": (
        2,
        [
            r"a message with tag 4 has come from it",
            r"and a receive of 4 bytes from rank 1, tag 9",
            "deadlock",
        ],
    ),
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


STALL = 0.4  # seconds; the next report comes ten times as long after the first one
PATIENCE = 40  # seconds until the report has to be there


def report(
    host: str,
    program: list[str],
    ranks: int,
    wanted: list[str],
    directory: Path,
    pause: float = 10 * STALL,
    **env: str,
) -> str:
    """What a job that hangs has said when its last report has all that is wanted; no more reports than one a pause.

    A rank that came late to where it waits is not in the first report. The program gets the name of a file at whose
    appearance it ends, and that of a pipe.
    """
    end, err = directory / "end", directory / "err"
    if not (directory / "pipe").exists():
        os.mkfifo(directory / "pipe")
    with open(err, "w") as file:
        job = subprocess.Popen(
            command(host, ranks, [*program, str(end), str(directory / "pipe")]),
            env=environment(host, True, {"NEARFIELD_STALL_SECONDS": str(STALL)} | env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=file,
            start_new_session=True,
        )
    begun = time.monotonic()
    text = last = ""
    try:
        while not all(re.search(pattern, last) for pattern in wanted):
            if job.poll() is not None and NOT_LAUNCHED in text:
                return report(host, program, ranks, wanted, directory, pause, **env)
            assert job.poll() is None and time.monotonic() < begun + PATIENCE, text
            time.sleep(0.01)
            text = err.read_text(errors="replace")
            last = text.rpartition("hang report of")[2]
        end.touch()
        job.wait(PATIENCE)
    finally:
        kill_tree(job.pid)
        job.wait()
    text = err.read_text(errors="replace")
    assert text.count("hang report of") <= 1 + (time.monotonic() - begun) / pause, text
    return text


def report_of(host: str, ranks: int, scenario: str, wanted: list[str], directory: Path, **more: Any) -> str:
    """The same of a scenario of hang_report.c, with the lines of the source, which are a report's last ones."""
    program = [compile_c(host, "hang_report.c"), scenario]
    return report(host, program, ranks, [*wanted, r": \w+ at .*hang_report\.c:\d+\n"], directory, **more)


# Reports are the engine's work: of a second host some show how its calls and handles get into them.
OF_EACH_HOST = ("count", "split", "waitall", "fence", "host", "roots")


def on_hosts(scenarios: Iterable[str]) -> list:
    """Hosts and scenarios, as parameters for pytest."""
    return [
        pytest.param(
            *host.values, scenario, marks=[*host.marks, *[FULL] * (second and scenario not in OF_EACH_HOST)]
        )
        for second, host in enumerate(BOTH)
        for scenario in scenarios
    ]


@pytest.mark.parametrize(("host", "fault"), on_hosts(FAULTS))
def test_faults_are_named(host: str, fault: str, tmp_path: Path) -> None:
    ranks, wanted = FAULTS[fault]
    report_of(host, ranks, fault, wanted, tmp_path)


# Ranks that wait for each other in different calls have an error before anybody writes a hang report.
@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("operation", r"is in (barrier of 0|bcast of 4194304) bytes where rank \d is in"),
        ("root", r"is in bcast of 4 bytes where rank \d is in bcast"),
    ],
)
@pytest.mark.parametrize("host", BOTH)
def test_different_calls_are_errors(host: str, fault: str, told: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    program = [compile_c(host, "hang_report.c"), fault, str(tmp_path / "end"), str(tmp_path / "pipe")]
    job = launch(host, 2, program, {"NEARFIELD_STALL_SECONDS": "60"}, served=UNKNOWN)
    assert not job.timed_out and job.returncode != 0
    assert re.search(told, job.text), job.text


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


@pytest.mark.parametrize(("host", "program"), on_hosts(LEGAL))
def test_programs_that_are_late_are_not_said_to_be_wrong(host: str, program: str, tmp_path: Path) -> None:
    ranks, wanted = LEGAL[program]
    text = report_of(host, ranks, program, wanted, tmp_path)
    assert "mismatch" not in text and "deadlock" not in text, text


BY_SIGNAL = {"NEARFIELD_STALL_SECONDS": "0", "NEARFIELD_STALL_SIGNAL": "USR2"}


@pytest.mark.parametrize("host", BOTH)
def test_a_rank_of_another_node_is_named(host: str, tmp_path: Path) -> None:
    where = 'r=${PMI_RANK:-$OMPI_COMM_WORLD_RANK}; export NEARFIELD_NODE=n$((r / 2)); exec "$0" "$@"'
    program = ["sh", "-c", where, compile_c(host, "hang_report.c"), "from afar"]
    wanted = [r"rank 0 \(process \d+\) is in the host's part of MPI_Recv from rank 3, tag 3"]
    report(host, program, 4, wanted, tmp_path, pause=2, **BY_SIGNAL)


def test_places_are_named_whatever_paths_and_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "a directory" / "its program"
    program.parent.mkdir()
    shutil.copy(compile_c("mpich", "hang_report.c"), program)
    monkeypatch.chdir(program.parent)
    wanted = [
        rf"called at {program}\+0x[0-9a-f]+",
        rf"{program}\+0x[0-9a-f]+: receive at .*hang_report\.c:\d+",
    ]
    report("mpich", ["./its program", "elsewhere"], 2, wanted, tmp_path)


@pytest.mark.parametrize("host", BOTH)
def test_a_signal_calls_the_roll(host: str, tmp_path: Path) -> None:
    wanted = [r"by rank \d: asked by a signal", r"rank 0 .*MPI_Barrier"]
    report_of(host, 2, "signal", wanted, tmp_path, pause=2, **BY_SIGNAL)


@pytest.mark.parametrize("name", ["NONE", "11", "9"])
def test_a_bad_signal_is_refused(name: str) -> None:
    program = [compile_c("mpich", "hang_report.c"), "nothing", "/nonexistent"]
    job = launch("mpich", 2, program, env={"NEARFIELD_STALL_SIGNAL": name})
    assert job.returncode == 0, job.text
    assert f"NEARFIELD_STALL_SIGNAL={name} cannot ask for a hang report: it is not a signal" in job.text


PYTHON = """
import os, sys, threading, time
from mpi4py import MPI
def end_when_asked():
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.01)
    os._exit(3)
MPI.COMM_WORLD.Barrier()
threading.Thread(target=end_when_asked, daemon=True).start()
if MPI.COMM_WORLD.rank == 1:
    time.sleep(60)
MPI.COMM_WORLD.Barrier()
"""


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="this interpreter keeps its frames to itself")
@pytest.mark.parametrize("host", hosts("mpich"))
def test_lines_of_python_are_named(host: str, tmp_path: Path) -> None:
    program = tmp_path / "stalls.py"
    program.write_text(PYTHON)
    report(host, [python_of(host), str(program)], 2, [r'stalls\.py", line 12 in <module>'], tmp_path)
