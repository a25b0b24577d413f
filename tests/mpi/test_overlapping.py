"""Collectives that return before they are done, beside everything else, on every host."""

import pytest

from tests.mpi.jobs import EVERYTHING, hosts
from tests.mpi.scenario_jobs import good_scenarios


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_those_of_several_threads_complete_in_every_way(host: str, ranks: int) -> None:
    good_scenarios(host, ranks, "overlapping_threads", threads=True)


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_they_go_on_where_messages_are_the_hosts(host: str, ranks: int) -> None:
    served = EVERYTHING.but("messages: all", "allreduce: switched off")
    good_scenarios(
        host, ranks, "without_messages", env={"NEARFIELD_MESSAGES": "off"}, threads=True, served=served
    )
