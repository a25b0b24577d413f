"""NEARFIELD_PROGRESS=thread: what has begun goes on while the program does not call."""

import re

import pytest

from tests.mpi.jobs import (
    EVERYTHING,
    HEAP,
    LIBRARY,
    PROGRAMS,
    Completed,
    compile_c,
    compile_library,
    hosts,
    launch,
)
from tests.mpi.resident import Jobs
from tests.mpi.scenario_jobs import good_scenarios
from tests.mpi.test_progress import goes_on

THREAD = {"NEARFIELD_PROGRESS": "thread"}
THREE = hosts("mpich", "openmpi", "impi")
MILLISECONDS = "400"


def with_thread(
    host: str, ranks: int, what: str, env: dict[str, str], milliseconds: str = MILLISECONDS
) -> Completed:
    """Runs a scenario of progress_thread.c."""
    env = {"NEARFIELD_STALL_SECONDS": "20"} | env
    program = [compile_c(host, "progress_thread.c"), what, milliseconds]
    job = launch(host, ranks, program, env=env, timeout=60, served=EVERYTHING)
    assert not job.timed_out, job.text[-3000:]
    return job


def times(job: Completed) -> dict[str, int]:
    """How many ranks were early, and so on; launchers may join their lines."""
    assert job.returncode == 0, job.text[-3000:]
    return {word: n for word in ("early", "late", "now and then") if (n := job.stdout.count(word))}


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("what", ["receive", "allreduce", "alltoallv"])
@pytest.mark.parametrize("host", THREE)
def test_peers_of_a_rank_that_does_not_call_are_through(host: str, what: str, ranks: int) -> None:
    job = with_thread(host, ranks, what, THREAD)
    assert times(job) == {"early": ranks - 1}, job.text[-3000:]


@pytest.mark.parametrize("what", ["receive", "allreduce", "alltoallv"])
def test_without_it_they_wait(what: str) -> None:
    env = {"NEARFIELD_HEAP": "off"}  # no receiver, no sender can do it alone
    assert "early" not in times(with_thread("mpich", 2, what, env))


@pytest.mark.parametrize("what", ["receive", "send", "allreduce", "alltoallv", "allreduce-planned"])
def test_so_they_are_by_copy_buffers(what: str) -> None:
    job = with_thread("mpich", 2, what, THREAD | {"NEARFIELD_HEAP": "off"})
    assert times(job) == {"early": 1}, job.text[-3000:]


@pytest.mark.parametrize("host", THREE)
def test_it_sleeps_while_nothing_is_under_way(host: str) -> None:
    job = with_thread(host, 2, "idle", THREAD, "2000")
    sleeps = [int(each) for each in re.findall(r"(\d+) sleeps", job.stdout)]
    assert len(sleeps) == 2 and max(sleeps) < 40, job.text


def test_it_is_there_only_if_asked_for() -> None:
    for env in ({}, {"NEARFIELD_PROGRESS": "calls"}):
        assert with_thread("mpich", 2, "idle", env, "10").stdout.count("no thread") == 2
    job = with_thread("mpich", 2, "idle", {"NEARFIELD_PROGRESS": "often"}, "10")
    assert job.returncode != 0 and "calls, thread" in job.text


@pytest.mark.parametrize("host", THREE)
def test_the_program_gets_the_level_that_it_asks_for(host: str) -> None:
    told = [with_thread(host, 2, "level", env).stdout.count("single") for env in (THREAD, {})]
    assert told[0] == told[1]


@pytest.mark.parametrize("host", THREE)
def test_an_abort_ends_it(host: str) -> None:
    assert with_thread(host, 2, "abort", THREAD, "50").returncode != 0


def test_without_a_thread_all_goes_on_by_calls() -> None:
    library = compile_library(PROGRAMS / "no_threads.c", "no_threads.so")
    env = THREAD | {
        "LD_PRELOAD": f"{library}:{LIBRARY}:{HEAP}",
        "NEARFIELD_LOG": "info",
        "NEARFIELD_HEAP": "off",
    }
    job = with_thread("mpich", 2, "allreduce", env)
    assert "early" not in times(job), job.text[-3000:]
    assert job.stderr.count("the thread could not be started") == 2, job.text


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_random_programs(jobs: Jobs, host: str, ranks: int) -> None:
    for seed, env in ((21, {}), (22, {"NEARFIELD_HEAP": "off"}), (23, {"NEARFIELD_PROTOCOL": "queue"})):
        job = jobs(host, ranks, THREAD | env)
        answers = job.run("oracle.messages:drawn", seed=seed, rounds=40, seconds=5, timeout=150)
        assert answers[0]["result"] > 0


@pytest.mark.parametrize("ranks", [2, 4])
def test_scenarios_beside_it(ranks: int) -> None:
    good_scenarios("mpich", ranks, "forks", "freed_planned", env=THREAD)
    good_scenarios("mpich", ranks, "partitioned_threads 5 60", env=THREAD, threads=True)


@pytest.mark.parametrize("host", THREE)
def test_it_stands_in_for_ranks_that_block_in_the_host(host: str) -> None:
    goes_on(host, 3, THREAD)
