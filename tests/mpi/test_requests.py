"""Arrays of requests, ours and the host's, in all that completes them: outcomes, errors, and what they cost in memory."""

import pytest

from tests.mpi.jobs import SANITIZED, compile_c, hosts, launch

ALL = hosts()


def good(host: str, ranks: int, scenario: str, nearfield: bool = True) -> None:
    """Runs a scenario; fails when it hangs, or when a rank found something wrong."""
    env = {"NEARFIELD_STALL_SECONDS": "20"}
    program = [compile_c(host, "requests.c"), scenario]
    job = launch(host, ranks, program, env=env, timeout=60, nearfield=nearfield)
    assert not job.timed_out and job.returncode == 0 and "good" in job.stdout, job.text[-3000:]


@pytest.mark.parametrize("scenario", ["arrays", "troubles"])
@pytest.mark.parametrize("host", ALL)
def test_arrays_of_every_kind_complete_in_every_way(host: str, scenario: str) -> None:
    for ranks in (1, 2, 3):
        good(host, ranks, scenario)


@pytest.mark.parametrize("host", ALL)
def test_looks_at_ours_keep_the_host_going(host: str) -> None:
    for ranks in (2, 4):
        good(host, ranks, "looks")


@pytest.mark.skipif(SANITIZED, reason="the sanitizer counts on its own malloc")
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_small_arrays_and_looks_that_find_nothing_allocate_nothing(host: str) -> None:
    good(host, 2, "memory")
