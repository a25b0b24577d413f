"""nearfield.mpi4py: objects between ranks are what mpi4py's own calls make of them."""

import pytest

from tests.mpi.jobs import ROOT, hosts
from tests.mpi.resident import Job, Jobs
from tests.selection import per_change

# Everything by parts and pieces, and as it is.
CONSTANTS = [{}, {"RECORD": 150, "INSIDE": -1, "LONG": 30_000, "PIECE": 50_000}]
# Calls of communicators of one rank aside, our own collectives have to be served; mpi4py's suite asks the host for the rest.
SUITE = ROOT / ".hosts/mpi4py-tests/test"


def plain(jobs: Jobs, host: str, ranks: int) -> Job:
    """A job without Nearfield."""
    return jobs(host, ranks, {"NEARFIELD": "off"}, nearfield=False)


@pytest.mark.parametrize("constants", CONSTANTS, ids=["as it is", "all in pieces"])
@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_collectives_give_what_mpi4py_gives(jobs: Jobs, host: str, ranks: int, constants: dict) -> None:
    answers = jobs(host, ranks).run("oracle.objects:collectives", timeout=120, **constants)
    assert answers[0]["result"] > 100


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_collectives_of_a_part_of_the_ranks(jobs: Jobs, host: str) -> None:
    jobs(host, 5).run("oracle.objects:collectives", members=[1, 2, 4], timeout=120)


@pytest.mark.parametrize("constants", CONSTANTS, ids=["as it is", "all in pieces"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_messages_by_every_call_and_in_order(jobs: Jobs, host: str, ranks: int, constants: dict) -> None:
    jobs(host, ranks).run("oracle.objects:messages", timeout=120, **constants)


@pytest.mark.parametrize("constants", CONSTANTS, ids=["as it is", "all in pieces"])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_threads_of_a_communicator_do_not_wait_for_each_other(jobs: Jobs, host: str, constants: dict) -> None:
    jobs(host, 2).run("oracle.objects:threads", **constants)


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_received_memory_is_a_ranks_own(jobs: Jobs, host: str) -> None:
    jobs(host, 3).run("oracle.objects:own_memory")


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_objects_that_fail_disturb_nothing(jobs: Jobs, host: str, ranks: int) -> None:
    jobs(host, ranks).run("oracle.objects:errors")


@pytest.mark.parametrize("case", per_change(["collectives", "messages", "own_memory", "errors"]))
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_it_works_without_nearfield(jobs: Jobs, host: str, case: str) -> None:
    plain(jobs, host, 2).run(f"oracle.objects:{case}", timeout=120)


@pytest.mark.full
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_more_bytes_than_an_int_counts(jobs: Jobs, host: str) -> None:
    jobs(host, 2).run("oracle.objects:huge", length=(2 << 30) + (200 << 20), timeout=300)


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_mpi4pys_tests_of_pkl5_pass(jobs: Jobs, host: str, ranks: int) -> None:
    answers = jobs(host, ranks).run(
        "oracle.objects:pkl5s_own", suite=str(SUITE), left="anything", timeout=120
    )
    assert answers[0]["result"] > 100
