"""A rank that waits, for whatever it is, keeps its peers going: programs that every plain host runs."""

import pytest

from tests.mpi.jobs import AT_ONCE, EVERYTHING, Served, hosts
from tests.mpi.scenario_jobs import good_scenarios

SCENARIOS = [
    "progress_unread",
    "progress_first_collective",
    "progress_callbacks",
    "progress_windows",
    "progress_at_end",
]
# Windows of memory that peers cannot reach are the host's.
SERVED = EVERYTHING.but("windows: memory")


def goes_on(host: str, ranks: int, env: dict[str, str] | None = None, served: Served = SERVED) -> None:
    """All of the scenarios, the last of which goes on in MPI_Finalize."""
    last = good_scenarios(host, ranks, *SCENARIOS, env=env, served=served)[-1]
    assert "called back at the end" in last.lines, last.job.text[-3000:]


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("host", hosts())
def test_waiting_ranks_take_in_what_peers_send(host: str, ranks: int) -> None:
    goes_on(host, ranks)


@pytest.mark.parametrize(
    "env", [{"NEARFIELD_HEAP": "off"}, {"NEARFIELD_WAIT": "sleep"}, {"NEARFIELD_PROTOCOL": "fastbox"}]
)
def test_so_they_do_in_every_way_of_waiting_and_sending(env: dict[str, str]) -> None:
    good_scenarios("mpich", 3, "progress_unread", "progress_first_collective", env=env, served=SERVED)


def test_so_they_do_when_it_is_more_than_they_like_to_keep() -> None:
    good_scenarios("mpich", 2, "progress_much_unread", served=SERVED)


def test_a_flush_does_not_block() -> None:
    good_scenarios("mpich", 2, "progress_flush")


@pytest.mark.parametrize("host", hosts())
def test_what_is_outstanding_needs_no_call_and_costs_none(host: str) -> None:
    good_scenarios(
        host,
        2,
        "outstanding_sender_computes",
        "outstanding_freed",
        "outstanding_large",
        served=SERVED,
        timeout=240,
    )


AHEAD = [
    *("ahead", "ahead_mixed", "ahead_by_chance", "ahead_in_several", "ahead_freed", "ahead_too_far"),
    "ahead_at_the_end",
]


@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("host", hosts())
def test_who_only_gives_may_be_ahead(host: str, ranks: int) -> None:
    good_scenarios(host, ranks, *AHEAD, env=AT_ONCE)


@pytest.mark.parametrize("algorithm", ["slots", "tree", "pipeline", "direct", "together"])
def test_so_it_may_by_whatever_algorithm(algorithm: str) -> None:
    kinds = ("gather", "scatter", "reduce", "bcast")
    env = {"NEARFIELD_ALGORITHM": ";".join(f"{kind}:{algorithm}" for kind in kinds)} | AT_ONCE
    good_scenarios("mpich", 5, "ahead_mixed", "ahead_by_chance", "ahead_freed", env=env)
