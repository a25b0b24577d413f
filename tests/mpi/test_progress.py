"""A rank that waits, for whatever it is, keeps its peers going: programs that every plain host runs."""

import pytest

from tests.mpi.jobs import compile_c, hosts, launch

SCENARIOS = ["unread", "first-collective", "callbacks", "windows", "at-end"]
ALL = hosts()


def good(host: str, ranks: int, scenario: str, env: dict[str, str] | None = None) -> None:
    """Runs a scenario; fails when it hangs, or when a rank found something wrong."""
    job = launch(host, ranks, [compile_c(host, "progress.c"), scenario], env=env, timeout=60)
    assert not job.timed_out and job.returncode == 0 and "good" in job.stdout, job.text[-3000:]


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("host", ALL)
def test_waiting_ranks_take_in_what_peers_send(host: str, scenario: str) -> None:
    for ranks in (2, 4):
        good(host, ranks, scenario)


@pytest.mark.parametrize(
    "env", [{"NEARFIELD_HEAP": "off"}, {"NEARFIELD_WAIT": "sleep"}, {"NEARFIELD_PROTOCOL": "fastbox"}]
)
def test_so_they_do_in_every_way_of_waiting_and_sending(env: dict[str, str]) -> None:
    for scenario in ("unread", "first-collective"):
        good("mpich", 3, scenario, env)


def test_so_they_do_when_it_is_more_than_they_like_to_keep() -> None:
    good("mpich", 2, "much-unread")


def test_a_flush_does_not_block() -> None:
    good("mpich", 2, "flush")
