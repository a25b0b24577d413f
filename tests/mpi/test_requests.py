"""Arrays of requests, ours and the host's, in all that completes them: outcomes, errors, and what they cost in memory."""

from dataclasses import replace

import pytest

from tests.mpi.jobs import EVERYTHING, SANITIZED, compile_c, hosts, launch
from tests.mpi.scenario_jobs import good_scenarios

# Of one communicator the messages are the host's.
SERVED = EVERYTHING.but("messages")


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
@pytest.mark.parametrize("host", hosts())
def test_arrays_of_every_kind_complete_in_every_way(host: str, ranks: int) -> None:
    scenarios = ("requests_arrays", "requests_asked", "requests_troubles", "requests_cancels")
    good_scenarios(host, ranks, *scenarios, served=SERVED)


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("host", hosts())
def test_looks_at_ours_keep_the_host_going(host: str, ranks: int) -> None:
    good_scenarios(host, ranks, "requests_looks", served=replace(SERVED, anywhere=True))


@pytest.mark.skipif(SANITIZED, reason="the sanitizer counts on its own malloc")
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_small_arrays_and_looks_that_find_nothing_allocate_nothing(host: str) -> None:
    job = launch(host, 2, [compile_c(host, "allocations.c")], served=SERVED)
    assert not job.timed_out and job.returncode == 0 and "good" in job.stdout, job.text[-3000:]
