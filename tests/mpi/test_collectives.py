"""Every collective in every form, of every type and operator, on communicators of every kind, against the oracle."""

import re
from typing import Any

import pytest

from tests.mpi.jobs import AT_ONCE, hosts
from tests.mpi.operations import ALGORITHMS, OPERATIONS
from tests.mpi.resident import Job, Jobs

EVERY = hosts("mpich", "openmpi", "impi")
BOTH = hosts("mpich", "openmpi")
# By ranks: how many cases of each kind. Hosts, which a tenth of all calls is compared with, take tens of milliseconds a call
# where ranks outnumber CPUs.
CASES = {
    1: {"singles": 200, "programs": 150},
    2: {"singles": 700, "programs": 250},
    3: {"singles": 300, "programs": 150},
    4: {"singles": 150, "programs": 80},
    5: {"singles": 150, "programs": 80},
    8: {"singles": 60, "programs": 25},
    9: {"singles": 50, "programs": 15},
}
COLLECTIVES = ["call", "many", "finish", "make", "part"]  # steps of programs without messages and windows
V_FORMS = {"allgatherv", "gatherv", "scatterv", "alltoallv", "alltoallw"}
NEAR = {f"neighbor_{name}" for name in ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw")}


@pytest.mark.parametrize("ranks", CASES)
@pytest.mark.parametrize("host", EVERY)
def test_random_calls_equal_the_model(jobs: Jobs, host: str, ranks: int) -> None:
    cases = CASES[ranks]["singles"]
    answers = jobs(host, ranks).run("oracle.collectives:singles", seed=ranks + 20, count=cases, timeout=240)
    carried = set(answers[0]["carried"])
    of_teams = set(OPERATIONS) if ranks > 1 else set()  # those of one rank are the host's
    assert ranks > 5 or {*of_teams, *V_FORMS, *NEAR} <= carried, carried


def programs(job: Job, seed: int, steps: int, **options: Any) -> None:
    """A random program of which all is carried, but for windows of memory that is out of reach."""
    left = ["windows_to_the_host"]
    job.run("oracle.programs:walk", seed=seed, steps=steps, seconds=100, left=left, timeout=240, **options)


@pytest.mark.parametrize("ranks", CASES)
@pytest.mark.parametrize("host", EVERY)
def test_so_do_programs_of_everything_at_once(jobs: Jobs, host: str, ranks: int) -> None:
    programs(jobs(host, ranks), ranks + 20, CASES[ranks]["programs"])


@pytest.mark.parametrize("ranks", [1, 2, 3, pytest.param(5, marks=pytest.mark.full), 8])
@pytest.mark.parametrize("host", EVERY)
def test_so_do_those_on_memory_that_is_not_shared(jobs: Jobs, host: str, ranks: int) -> None:
    # Nor does the host serve a communicator's first calls, whichever they are: its team is made while others are under way.
    job = jobs(host, ranks, {"NEARFIELD_HEAP": "off", **AT_ONCE})
    cases = CASES[ranks]["singles"] // 2
    answers = job.run("oracle.collectives:singles", seed=ranks + 40, count=cases, timeout=240)
    assert answers[0]["carried"]
    programs(job, ranks + 40, CASES[ranks]["programs"] // 2)


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("host", EVERY)
def test_so_do_those_that_a_thread_keeps_going(jobs: Jobs, host: str, ranks: int) -> None:
    job = jobs(host, ranks, {"NEARFIELD_PROGRESS": "thread"})
    for seed in (11, 12, 13):
        programs(job, seed, CASES[ranks]["programs"] // 4, names=COLLECTIVES)


@pytest.mark.parametrize("ranks, first", [(2, 1), (5, 1), (5, 2), (5, 3), (3, 2), (4, 1)])
@pytest.mark.parametrize("host", EVERY)
def test_calls_between_two_groups_equal_the_model(jobs: Jobs, host: str, ranks: int, first: int) -> None:
    job, seed = jobs(host, ranks), 3 * ranks + first
    one = job.run("oracle.collectives:singles", seed=seed, count=220, first=first, timeout=120)
    assert not {*OPERATIONS, *V_FORMS} - {"scan", "exscan"} - {*one[0]["carried"]}
    programs(job, seed, 40, first=first, names=COLLECTIVES)


@pytest.mark.parametrize("host", BOTH)
@pytest.mark.parametrize("first", [0, 2])
def test_the_model_is_right_of_plain_hosts(jobs: Jobs, host: str, first: int) -> None:
    job = jobs(host, 3, nearfield=False)
    job.run("oracle.collectives:by_the_host", seed=5, count=60, first=first, timeout=120)


# All rows but those of machines with several last-level caches or packages, and of numbers of ranks that there are not.
@pytest.mark.parametrize(
    "sizes, others",
    [
        ([5], "near-first|distant|xored"),
        pytest.param([2, 4, 9], "near-first|distant|grouped", marks=pytest.mark.full),
    ],
    ids=["5", "2,4,9"],
)
@pytest.mark.parametrize("host", BOTH)
def test_every_row_that_is_forced_runs(jobs: Jobs, host: str, sizes: list[int], others: str) -> None:
    ran = set()
    for ranks in sizes:
        answers = jobs(host, ranks).run("oracle.collectives:rows", lengths=[1, 48, 1000, 20000], timeout=120)
        ran |= {row for answer in answers for row in answer["result"]}
    every = {f"{op}:{row}" for op, rows in ALGORITHMS.items() for row in rows}
    assert not {row for row in every - ran if not re.search(others, row)}


# Open MPI pairs two neighbours that are one rank in its own way.
@pytest.mark.every_host
@pytest.mark.parametrize("ranks", [3])
@pytest.mark.parametrize("host", EVERY)
def test_wrong_arguments_give_the_hosts_errors(jobs: Jobs, host: str, ranks: int) -> None:
    plain, ours = (
        jobs(host, ranks, nearfield=nearfield).run("oracle.collectives:errors", left="anything")[0]["result"]
        for nearfield in (False, True)
    )
    assert len(plain) == len(ours) == 46
    for host_said, said in zip(plain, ours, strict=True):
        # MPICH and Intel MPI lose truncations of Iscatterv.
        assert said == host_said or host_said.endswith(f": {[0] * ranks}")
