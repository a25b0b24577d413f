"""Random process life, plain and with Nearfield: what the program can observe is the same (tests/heap/life)."""

import pytest

from tests.heap.life import difference, search
from tests.mpi.jobs import hosts

# Seeds that have failed, with the number of steps they need, without MPI.
ONCE_FAILED = [(3, 40), (5, 60), (8, 20)]


@pytest.mark.parametrize("seed, steps", ONCE_FAILED)
def test_seeds_that_have_failed(seed: int, steps: int) -> None:
    assert not difference(None, 1, seed, steps)


def test_random_life() -> None:
    search(None, 1, seconds=4)


@pytest.mark.every_host
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_random_life_of_ranks(host: str) -> None:
    search(host, 2, seconds=1.5)


@pytest.mark.full
@pytest.mark.parametrize("host", [None, *hosts("mpich", "openmpi", "impi")])
def test_random_life_for_minutes(host: str | None) -> None:
    search(host, 2 if host else 1, seconds=150)
