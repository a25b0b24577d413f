"""Random MPI programs by seeds from the clock, as users run them: teams are deferred, the heap is shared."""

import pytest

from tests.mpi.fuzz import STEPS, play, search
from tests.mpi.jobs import hosts
from tests.mpi.resident import Jobs

# Host, ranks and seed of programs that have failed.
ONCE_FAILED: list[tuple[str, int, int]] = []
EVERY = hosts("mpich", "openmpi", "impi")


@pytest.mark.every_host
@pytest.mark.parametrize("host", EVERY)
def test_random_programs(jobs: Jobs, host: str) -> None:
    search(jobs, host, 3, seconds=3)


@pytest.mark.parametrize("host, ranks, seed", ONCE_FAILED)
def test_programs_that_have_failed(jobs: Jobs, host: str, ranks: int, seed: int) -> None:
    play(jobs, host, ranks, seed, STEPS, seconds=60)


@pytest.mark.full
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("host", EVERY)
def test_random_programs_for_minutes(jobs: Jobs, host: str, ranks: int) -> None:
    search(jobs, host, ranks, seconds=100)
