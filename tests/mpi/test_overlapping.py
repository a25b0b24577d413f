"""Collectives that return before they are done, beside everything else, on every host."""

import pytest

from tests.mpi.jobs import compile_c, hosts, launch


@pytest.mark.parametrize("threads", [[], ["threads"]], ids=["one", "threads"])
@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_several_outstanding_complete_in_every_way(host: str, ranks: int, threads: list[str]) -> None:
    env = {"NEARFIELD_STALL_SECONDS": "20", "NEARFIELD_STATS": "1"}
    program = [compile_c(host, "overlapping.c"), *threads]
    job = launch(host, ranks, program, env=env, timeout=120)
    assert not job.timed_out and job.returncode == 0 and "good" in job.stdout, job.text[-3000:]


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_they_go_on_where_messages_are_the_hosts(host: str, ranks: int) -> None:
    env = {"NEARFIELD_STALL_SECONDS": "20", "NEARFIELD_MESSAGES": "off"}
    job = launch(host, ranks, [compile_c(host, "without_messages.c")], env=env, timeout=60)
    assert not job.timed_out and job.returncode == 0, job.text[-3000:]
    assert job.stdout.count("good") == ranks
