"""What is recorded of a program's calls: the counts, bytes and places that it really had, however it ends."""

import json
import os
import re
import signal
import subprocess
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from nearfield.recording import join, join_traces
from tests.mpi.jobs import command, compile_c, descendants, environment, hosts, kill_tree, launch, python_of

Record = dict[str, Any]
LATE = 50_000  # microseconds


def recorded(host: str, ranks: int, directory: Path, *arguments: str, **env: str) -> Record:
    """The only world that a job of the test's program has recorded."""
    job = launch(
        host,
        ranks,
        [compile_c(host, "recorded.c"), *arguments],
        env={"NEARFIELD_RECORD": str(directory)} | env,
    )
    assert not job.timed_out, job.text[-3000:]
    worlds = join(directory)["worlds"]
    assert len(worlds) == 1, job.text[-3000:]
    return worlds[0]


def sums(world: Record, rank: int) -> dict[tuple[str, str], tuple[int, int]]:
    """Calls and bytes of a rank by the function of the program and that of MPI; what the host calls itself is left out."""
    found: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for row in world["rows"]:
        if (of := row["ranks"].get(str(rank))) and "recorded.c" in row["site"]:
            one = found[row["site"].split()[0], row["function"]]
            one[0] += of["calls"]
            one[1] += of["bytes"]
    return {key: (calls, number) for key, (calls, number) in found.items()}


def expected(rank: int, ranks: int) -> dict[tuple[str, str], tuple[int, int]]:
    """What recorded.c does."""
    return {
        ("main", "MPI_Comm_split"): (1, 0),
        ("sums", "MPI_Allreduce"): (10, 10 * 128 * 8),
        ("ring", "MPI_Recv" if rank % 2 else "MPI_Send"): (25, 25 * 4),
        ("lists", "MPI_Alltoallv"): (1, 2 * 4 * ranks),
        ("lists", "MPI_Allgather"): (1, 3 * 4),
        ("lists", "MPI_Scatter"): (1, 4 * 4),
        ("late", "MPI_Barrier"): (1, 0),
        ("to_the_host", "MPI_File_open"): (1, 0),
        ("to_the_host", "MPI_File_close"): (1, 0),
        ("main", "MPI_Comm_free"): (1, 0),
    }


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
@pytest.mark.parametrize("env", [{}, {"NEARFIELD": "off"}], ids=["carried", "off"])
def test_calls_are_counted_where_they_are(host: str, env: dict[str, str], tmp_path: Path) -> None:
    for ranks in (2, 4):
        world = recorded(host, ranks, tmp_path / str(ranks), "all", str(LATE), **env)
        assert world["size"] == len(world["ranks"]) == ranks and not world["missing"]
        for rank in world["ranks"]:
            assert rank["ending"] == "MPI_Finalize" and rank["rows_lost"] == 0
            assert sums(world, rank["rank"]) == expected(rank["rank"], ranks)
        pairs = [one for one in world["communicators"] if one["name"] == "pairs"]
        assert sorted(one["members"] for one in pairs) == [[n, n + 1] for n in range(0, ranks, 2)]
        served = {
            row["by"] for row in world["rows"] if row["function"] == "MPI_Allreduce" and "sums" in row["site"]
        }
        assert served and (served == {"host"}) == bool(env)
        assert all(row["by"] == "host" for row in world["rows"] if row["function"] == "MPI_File_open")
        if not env:  # rank 0 waits for rank 1, and is seen to
            (barrier,) = [row for row in world["rows"] if row["function"] == "MPI_Barrier"]
            waits = barrier["ranks"]["0"]
            assert LATE / 2e6 < waits["waiting"] <= waits["seconds"] + 1e-3


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_a_trace_is_in_order_and_says_who_was_late(host: str, tmp_path: Path) -> None:
    world = recorded(host, 2, tmp_path, "all", str(LATE), NEARFIELD_TRACE=f"{tmp_path}/%h.%r.%p%%.trace")
    assert len(list(tmp_path.glob("*.0.*%.trace"))) == 1
    for file in tmp_path.glob("*.trace"):
        trace = json.loads(file.read_text())
        calls = [event for event in trace["traceEvents"] if event["ph"] == "X"]
        assert [event["ts"] for event in calls] == sorted(event["ts"] for event in calls)
        for name, count in (("MPI_Allreduce", 10), ("MPI_Barrier", 1), ("MPI_Comm_split", 1)):
            assert sum(event["name"] == name for event in calls) == count
        ends = 0.0  # one thread is in one call at a time
        for event in calls:
            assert event["ts"] >= ends - 0.01 and event["dur"] >= 0
            ends = event["ts"] + event["dur"]
    joined = join_traces(tmp_path)["traceEvents"]
    assert {event["pid"] for event in joined} == {0, 1}
    times = [event["ts"] for event in joined if event["ph"] == "X"]
    assert times == sorted(times) and times[0] == 0
    (late,) = [one for one in world["waited_for"] if (one["rank"], one["for"]) == (0, 1)]
    assert late["seconds"] > LATE / 2e6


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_a_program_that_exits_without_finalizing_is_recorded(host: str, tmp_path: Path) -> None:
    world = recorded(host, 2, tmp_path, "exit", "0")
    assert any(rank["ending"] == "exit" for rank in world["ranks"])
    for rank in world["ranks"]:
        if rank["ending"]:
            assert sums(world, rank["rank"])["sums", "MPI_Allreduce"] == (10, 10240)


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_a_killed_program_leaves_what_it_had_done(host: str, tmp_path: Path) -> None:
    job = subprocess.Popen(
        command(host, 2, [compile_c(host, "recorded.c"), "killed", "0"]),
        env=environment(host, True, {"NEARFIELD_RECORD": str(tmp_path)}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + 60
        while len(list(tmp_path.glob("*.json"))) < 2 and time.monotonic() < end:
            time.sleep(0.1)
    finally:
        for pid in descendants(job.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        kill_tree(job.pid)
        job.wait()
    (world,) = join(tmp_path)["worlds"]
    for rank in (0, 1):
        assert world["ranks"][rank]["ending"] == ""
        calls, number = sums(world, rank)["sums", "MPI_Allreduce"]
        assert calls > 10 and number == calls * 1024
        assert sums(world, rank)["lists", "MPI_Scatter"] == (1, 16)


def test_each_thread_is_counted(tmp_path: Path) -> None:
    script = """
import threading
from mpi4py import MPI
comms = [MPI.COMM_WORLD.Dup() for _ in range(3)]
def work(comm):
    for _ in range(200):
        comm.Barrier()
threads = [threading.Thread(target=work, args=(comm,)) for comm in comms]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    job = launch("mpich", 2, [python_of("mpich"), "-c", script], env={"NEARFIELD_RECORD": str(tmp_path)})
    assert job.returncode == 0, job.text[-3000:]
    (world,) = join(tmp_path)["worlds"]
    for rank in ("0", "1"):
        rows = [row for row in world["rows"] if row["function"] == "MPI_Barrier" and rank in row["ranks"]]
        assert sum(row["ranks"][rank]["calls"] for row in rows) == 600


def test_a_child_writes_nothing_of_its_parents(tmp_path: Path) -> None:
    script = """
import os
from mpi4py import MPI
MPI.COMM_WORLD.Barrier()
child = os.fork()
if child == 0: raise SystemExit(0)
os.waitpid(child, 0)
"""
    launch("mpich", 2, [python_of("mpich"), "-c", script], env={"NEARFIELD_RECORD": str(tmp_path)})
    assert len(list(tmp_path.glob("*.json"))) == 2


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"NEARFIELD_TRACE": "/tmp/all"}, r"NEARFIELD_TRACE=/tmp/all.*neither %r nor %p"),
        ({"NEARFIELD_TRACE": "/tmp/%r%x"}, r"behind % is r, p, h or %"),
        ({"NEARFIELD_RECORD": "/proc/none"}, r"cannot be written to /proc/none"),
    ],
)
def test_what_cannot_be_written_is_said(env: dict[str, str], said: str) -> None:
    job = launch("mpich", 2, [compile_c("mpich", "recorded.c"), "all", "0"], env=env)
    assert re.search(said, job.stderr), job.text[-3000:]
