"""Reductions that only the host can combine (operators of programs, odd pairs of type and operator) against its own results."""

import pytest

from tests.mpi.jobs import EVERYTHING, carried, hosts
from tests.mpi.scenario_jobs import good_scenarios

OPERATIONS = ("reduce", "allreduce", "reduce_scatter_block", "scan", "exscan", "reduce_scatter")


@pytest.mark.parametrize("ranks", [2, 3, 4, 5])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_they_equal_the_hosts(host: str, ranks: int) -> None:
    longest = 100000 if ranks < 4 else 1000
    # Each is made once by the host, for its result; wrong pairs of type and operator stay wrong.
    reasons = ("switched off", "datatype")
    served = EVERYTHING.but(*(f"{operation}: {why}" for operation in OPERATIONS for why in reasons))
    (done,) = good_scenarios(host, ranks, f"combining {longest}", served=served)
    assert all(carried(done.job, operation) > 70 for operation in OPERATIONS), done.job.text[-4000:]
