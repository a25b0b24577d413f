"""Programs that plain hosts run, odd as they are: looks alone, communicators freed early, arguments that one rank gets wrong."""

import pytest

from tests.mpi.jobs import compile_c, hosts, launch

LOOKS = ["iprobe", "improbe", "hidden-iprobe", "window-test"]
LIVES = ["buffered", "collective", "first", "error"]
ERRORS = ["in-place", "first-error"]


@pytest.mark.parametrize("scenario", LOOKS + LIVES + ERRORS)
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_as_under_the_plain_host(host: str, scenario: str) -> None:
    job = launch(host, 2, [compile_c(host, "outlives.c"), scenario], timeout=60)
    assert not job.timed_out and job.returncode == 0 and "good" in job.stdout, job.text[-3000:]


@pytest.mark.parametrize("scenario", ["iprobe", "collective", "first"])
def test_so_they_do_with_a_helper_thread(scenario: str) -> None:
    job = launch(
        "mpich",
        2,
        [compile_c("mpich", "outlives.c"), scenario],
        env={"NEARFIELD_PROGRESS": "thread"},
        timeout=60,
    )
    assert not job.timed_out and job.returncode == 0 and "good" in job.stdout, job.text[-3000:]


# Open MPI takes equal addresses for in place.
@pytest.mark.parametrize("host", hosts("mpich", "impi"))
def test_ranks_that_get_nothing_judge_aliases_as_the_others(host: str) -> None:
    job = launch(host, 3, [compile_c(host, "wrong.c"), "aliased"], timeout=60)
    assert not job.timed_out and job.returncode == 0 and "good" in job.stdout, job.text[-3000:]


@pytest.mark.parametrize("scenario", ["unequal", "early", "statuses"])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_what_one_rank_gets_wrong_leaves_nobody_waiting(host: str, scenario: str) -> None:
    job = launch(host, 3, [compile_c(host, "wrong.c"), scenario], timeout=60)
    assert not job.timed_out and job.returncode == 0 and "good" in job.stdout, job.text[-3000:]
