"""Communicators whose first collective calls the host serves: results are those of all others, bit by bit."""

import pytest

from tests.mpi.jobs import UNKNOWN, hosts
from tests.mpi.scenario_jobs import good_scenarios


@pytest.mark.parametrize("calls", ["8", "3"])
@pytest.mark.parametrize("ranks", [2, 5])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_first_calls_are_as_all_others(host: str, ranks: int, calls: str) -> None:
    env = {"NEARFIELD_YOUNG": calls}
    first, _ = good_scenarios(
        host, ranks, "young_communicators", "young_windows", env=env, served=UNKNOWN, statistics=True
    )
    why = [operation.why for operation in first.job.statistics[0].operations.values()]
    assert any("communicator is young" in reasons for reasons in why), why
