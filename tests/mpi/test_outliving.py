"""Programs that only look keep their operations going, and operations outlive their communicators."""

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
