"""Ranks that wait long let their CPU rest, in calls of Nearfield's and in those that it hands on to the host."""

import pytest

from tests.mpi.jobs import AT_ONCE, EVERYTHING, compile_c, hosts, launch

# What a rank may use of a CPU; measured are 0.01 to 0.04, and 1 while it spins.
AT_REST = 0.3


LATE = 0.4  # seconds
# A deferred communicator's, in which the host moves data, and spins.
OF_THE_HOST = "first-Allreduce"


def shares(host: str, ranks: int, env: dict[str, str] | None = None) -> dict[str, float]:
    """What rank 0 uses of a CPU in those of the program's calls to which the last rank came late."""
    job = launch(host, ranks, [compile_c(host, "late.c"), str(int(LATE * 1000))], env=env, served=EVERYTHING)
    assert not job.timed_out and job.returncode == 0, job.text[-3000:]
    calls = [line.split() for line in job.stdout.splitlines()]
    assert len(calls) == 14 and calls[-1][0] == "Finalize", job.text[-3000:]
    # On a busy machine rank 0 may itself have come late.
    found = {name: float(share) for name, took, share in calls if float(took) > LATE / 2}
    assert found, job.text
    return found


# Open MPI and Intel MPI do not yield where each rank has a CPU of its own, so nothing of theirs can be served there.
@pytest.mark.parametrize("host", hosts("mpich"))
def test_a_rank_that_waits_rests(host: str) -> None:
    found = shares(host, 2)
    found.pop(OF_THE_HOST, None)
    assert {name: share for name, share in found.items() if share > AT_REST} == {}


def test_a_rank_rests_in_every_call_of_a_team() -> None:
    found = shares("mpich", 2, AT_ONCE)
    assert {name: share for name, share in found.items() if share > AT_REST} == {}


@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_so_it_does_where_ranks_share_cpus(host: str) -> None:
    found = shares(host, 6)
    found.pop(OF_THE_HOST, None)
    if host == "impi":
        found.pop("Finalize", None)  # which does not yield there
    assert {name: share for name, share in found.items() if share > AT_REST} == {}


def test_it_spins_where_it_is_told_to() -> None:
    found = shares("mpich", 2, {"NEARFIELD_WAIT": "spin", **AT_ONCE})
    assert max(found.values()) > AT_REST
