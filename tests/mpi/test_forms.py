"""Collectives in all their forms: what lives as long as they do, and calls before there is a team."""

import pytest

from tests.mpi.jobs import AT_ONCE, EVERYTHING, carried, hosts
from tests.mpi.scenario_jobs import good_scenarios


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_what_is_freed_lives_as_long_as_its_requests(host: str, ranks: int) -> None:
    # Memory that has been freed holds nothing that could pass for what was there.
    env = {"MALLOC_PERTURB_": "165"}
    freed, _ = good_scenarios(host, ranks, "freed", "freed_planned", env=env)
    assert carried(freed.job, "allreduce") >= 100


@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_a_team_is_created_while_nobody_waits(host: str, ranks: int) -> None:
    (done,) = good_scenarios(host, ranks, "async_creation 6", env=AT_ONCE)
    assert carried(done.job, "allreduce") > 0


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_what_is_freed_before_its_team_is_created_goes_with_its_request(host: str, ranks: int) -> None:
    good_scenarios(host, ranks, "async_creation_freed", env=AT_ONCE)


@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_what_is_wrong_is_told_before_there_is_a_team(host: str) -> None:
    scenarios = ("async_creation 1", "async_creation_errors")
    good_scenarios(host, 3, *scenarios, env=AT_ONCE, served=EVERYTHING.but("bcast: argument"))


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_they_go_on_where_messages_are_the_hosts(host: str, ranks: int) -> None:
    served = EVERYTHING.but("messages: all", "allreduce: switched off")
    good_scenarios(
        host, ranks, "without_messages", env={"NEARFIELD_MESSAGES": "off"}, threads=True, served=served
    )
