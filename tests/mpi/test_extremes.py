"""Data that counts and descriptions hardly hold: calls of many gibibytes, types of millions of blocks."""

import pytest

from tests.mpi.jobs import carried, hosts
from tests.mpi.scenario_jobs import good_scenarios

HUGE = {
    2: [f"huge_message {5 << 30}", f"huge_gather {1 << 30}", f"huge_scatter {1 << 30}"],
    3: [
        "huge_alltoall 1431655766",
        "huge_allgather_in_place 1431655766",
    ],  # three of them are 2^32 and 2 bytes
}


@pytest.mark.full
@pytest.mark.parametrize("ranks", HUGE)
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_products_of_count_and_ranks_have_64_bits(host: str, ranks: int) -> None:
    good_scenarios(host, ranks, *HUGE[ranks], timeout=300)


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_types_of_millions_of_blocks_are_packed(host: str) -> None:
    (done,) = good_scenarios(host, 2, "undescribed 1500000")
    assert carried(done.job, "bcast") == 1, done.job.text[-3000:]
