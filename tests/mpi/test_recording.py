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

from nearfield import recording
from nearfield.recording import join, join_traces
from tests.mpi.jobs import (
    EVERYTHING,
    NOTHING,
    command,
    compile_c,
    descendants,
    environment,
    hosts,
    kill_tree,
    launch,
    python_of,
)
from tests.selection import per_change

Record = dict[str, Any]
LATE = 50_000  # microseconds


def recorded(host: str, ranks: int, directory: Path, *arguments: str, **env: str) -> Record:
    """The only world that a job of the test's program has recorded."""
    job = launch(
        host,
        ranks,
        [compile_c(host, "recorded.c"), *arguments],
        env={"NEARFIELD_RECORD": str(directory)} | env,
        served=NOTHING if env.get("NEARFIELD") == "off" else EVERYTHING,
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


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
@pytest.mark.parametrize("env", per_change([{}, {"NEARFIELD": "off"}]), ids=["carried", "off"])
def test_calls_are_counted_where_they_are(host: str, env: dict[str, str], ranks: int, tmp_path: Path) -> None:
    world = recorded(host, ranks, tmp_path, "all", str(LATE), **env)
    assert world["size"] == len(world["ranks"]) == ranks and not world["missing"]
    for rank in world["ranks"]:
        assert rank["ending"] == "MPI_Finalize" and rank["rows_lost"] == 0
        assert sums(world, rank["rank"]) == expected(rank["rank"], ranks)
    pairs = [one for one in world["communicators"] if one["name"] == "pairs"]
    assert sorted(one["members"] for one in pairs) == [[n, n + 1] for n in range(0, ranks, 2)]
    assert world["sent"] == [
        {"rank": n, "to": n + 1, "messages": 25, "bytes": 100} for n in range(0, ranks, 2)
    ]
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


@pytest.mark.parametrize("host", per_change(hosts("mpich", "openmpi")))
def test_a_program_that_exits_without_finalizing_is_recorded(host: str, tmp_path: Path) -> None:
    world = recorded(host, 2, tmp_path, "exit", "0")
    assert any(rank["ending"] == "exit" for rank in world["ranks"])
    for rank in world["ranks"]:
        if rank["ending"]:
            assert sums(world, rank["rank"])["sums", "MPI_Allreduce"] == (10, 10240)


@pytest.mark.parametrize("host", per_change(hosts("mpich", "openmpi")))
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
        while time.monotonic() < end:  # what each has written first, in MPI_Init, has no calls
            ranks = [json.loads(file.read_text()) for file in tmp_path.glob("*.json")]
            if sum(bool(rank["rows"]) for rank in ranks) == 2:
                break
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


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_partners_in_another_group_are_named(host: str, tmp_path: Path) -> None:
    world = recorded(host, 4, tmp_path, "groups", str(4 * LATE), NEARFIELD_TRACE=f"{tmp_path}/%r.trace")
    for rank in range(4):
        assert sums(world, rank)["groups", "MPI_Reduce_scatter"] == (1, 6 * 8)
    (late,) = world["waited_for"]
    assert (late["rank"], late["for"]) == (0, 2) and late["seconds"] > LATE / 2e6
    found = sorted((one["members"], one["remote"]) for one in world["communicators"] if one["inter"])
    assert found == [([0], [1, 2, 3]), ([1, 2, 3], [0])]


@pytest.mark.parametrize("host", per_change(hosts("mpich", "openmpi")))
@pytest.mark.parametrize("env", [{}, {"NEARFIELD": "off"}], ids=["carried", "off"])
def test_a_job_that_died_at_once_is_apart_from_the_next(
    host: str, env: dict[str, str], tmp_path: Path
) -> None:
    for scenario in ("dies", "all"):
        program = [compile_c(host, "recorded.c"), scenario, "0"]
        served = NOTHING if env or scenario == "dies" else EVERYTHING
        launch(host, 2, program, env={"NEARFIELD_RECORD": str(tmp_path)} | env, served=served)
    worlds = join(tmp_path)["worlds"]
    assert [[rank["ending"] for rank in world["ranks"]] for world in worlds] == [
        ["", ""],
        ["MPI_Finalize"] * 2,
    ]
    assert sums(worlds[1], 0)["sums", "MPI_Allreduce"] == (10, 10240)


def test_worlds_are_made_of_ranks_that_belong_together() -> None:
    def rank(number: int, began: int, node: str = "", job: str = "") -> Record:
        return {"rank": number, "size": 2, "began_ns": began, "node": node, "job": job}

    def worlds(*ranks: Record) -> list[list[int]]:
        return [[ranks.index(rank) for rank in world] for world in recording._worlds(list(ranks))]

    assert worlds(rank(0, 1), rank(1, 2), rank(1, 5), rank(0, 6)) == [[0, 1], [3, 2]]
    # Of a job on the same node only one rank has written; of one on two nodes each knows its part.
    assert worlds(rank(0, 1, "n", "a"), rank(1, 5, "n", "b"), rank(0, 6, "n", "b")) == [[0], [2, 1]]
    assert worlds(rank(0, 1, "n", "a"), rank(1, 2, "m", "b")) == [[0, 1]]


def test_a_child_writes_nothing_of_its_parents(tmp_path: Path) -> None:
    # C's exit, which runs our handlers: Python's would call MPI_Finalize in the child, where MPICH alone hangs.
    script = """
import ctypes, os
from mpi4py import MPI
MPI.COMM_WORLD.Barrier()
child = os.fork()
if child == 0: ctypes.CDLL(None).exit(0)
os.waitpid(child, 0)
"""
    launch("mpich", 2, [python_of("mpich"), "-c", script], env={"NEARFIELD_RECORD": str(tmp_path)})
    assert len(list(tmp_path.glob("*.json"))) == 2


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"NEARFIELD_TRACE": "/tmp/all"}, r"NEARFIELD_TRACE=/tmp/all.*without %r or %p"),
        ({"NEARFIELD_TRACE": "/tmp/%r%x"}, r"after % write r, p, h or %"),
        ({"NEARFIELD_RECORD": "/proc/none"}, r"cannot be written to /proc/none"),
    ],
)
def test_what_cannot_be_written_is_said(env: dict[str, str], said: str) -> None:
    job = launch("mpich", 2, [compile_c("mpich", "recorded.c"), "all", "0"], env=env)
    assert re.search(said, job.stderr), job.text[-3000:]
