"""Jobs in which some ranks run without Nearfield."""

import subprocess

import pytest

from tests.mpi.jobs import EVERYTHING, UNKNOWN, command, compile_c, environment, hosts, launch, run

BOTH = hosts("mpich", "openmpi")
EVERY = hosts("mpich", "openmpi", "impi", "debian-mpich")
WITHOUT = ["env", "-u", "LD_PRELOAD"]
# What tells a rank that the whole job is on its node.
NODE = ["env", "-u", "MPI_LOCALNRANKS", "-u", "OMPI_COMM_WORLD_LOCAL_SIZE"]


@pytest.mark.parametrize("host", EVERY)
@pytest.mark.parametrize("absent_first", [False, True])
def test_the_host_serves_a_job_with_a_rank_without_nearfield(host: str, absent_first: bool) -> None:
    program = [compile_c("debian-mpich" if host == "debian-mpich" else host, "several.c"), "plain"]
    parts = [[*WITHOUT, *program], program][:: 1 if absent_first else -1]
    arguments = command(host, 1, [*parts[0], ":", "-n", "2", *parts[1]])
    job = run(arguments, environment(host, True), timeout=20)
    assert not job.timed_out and job.returncode == 0 and "good" in job.stdout, job.text
    absent = "rank 0 of 3" if absent_first else "rank 1, 2 of 3"
    assert job.stderr.count(f"{absent} runs without Nearfield") == 1, job.stderr


@pytest.mark.parametrize("host", BOTH)
def test_a_job_of_unknown_places_ends_with_the_ranks_named(host: str) -> None:
    program = [compile_c(host, "several.c"), "plain"]
    arguments = command(host, 2, [*NODE, *program, ":", "-n", "1", *WITHOUT, *program])
    job = run(arguments, environment(host, True), timeout=20)
    assert not job.timed_out and job.returncode != 0, job.text
    assert "waits for ranks that run without Nearfield: 2 (process" in job.stderr, job.stderr
    assert "several" in job.stderr


@pytest.mark.parametrize("host", BOTH)
def test_all_ranks_take_part_where_nobody_knows_places(host: str) -> None:
    job = launch(host, 3, [*NODE, compile_c(host, "several.c"), "plain"], served=EVERYTHING)
    assert "good" in job.stdout and "without Nearfield" not in job.stderr, job.text


@pytest.mark.parametrize("host", BOTH)
def test_ranks_in_sandboxes_are_not_absent(host: str) -> None:
    sandboxed = compile_c(host, "sandboxed.c")
    if subprocess.run([sandboxed, "true"], check=False).returncode == 77:
        pytest.skip("this kernel has no Landlock")
    program = [sandboxed, compile_c(host, "several.c"), "plain"]
    job = launch(host, 3, program, env={"NEARFIELD_LOG": "info"}, timeout=30, served=UNKNOWN)
    assert not job.timed_out and "good" in job.stdout and "without Nearfield" not in job.stderr, job.text
    assert "passing a segment to a peer: Operation not permitted" in job.stderr, job.text


@pytest.mark.parametrize("host", BOTH)
def test_spawned_processes_may_lack_nearfield(host: str) -> None:
    job = launch(host, 1, [compile_c(host, "spawns.c")], timeout=30, served=UNKNOWN)
    assert not job.timed_out and "good" in job.stdout, job.text


@pytest.mark.parametrize("first", ["world", "self"])
def test_ranks_are_not_missed_where_sessions_have_begun_before(first: str) -> None:
    job = launch("mpich", 3, [compile_c("mpich", "sessions_first.c"), first], timeout=30, served=EVERYTHING)
    assert not job.timed_out and job.returncode == 0 and "good" in job.stdout, job.text
    assert "without Nearfield" not in job.stderr, job.stderr
    assert all("allreduce" in rank.operations for rank in job.statistics), job.text
