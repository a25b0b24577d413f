"""Intercommunicators, and communicators of every origin: whose they are, and that they bring what the standard says.

Their collectives: tests/mpi/test_collectives.py.
"""

import pytest

from tests.mpi.jobs import hosts
from tests.mpi.resident import Jobs

EVERY = hosts("mpich", "openmpi", "impi")
GROUPS = [(2, 1), (5, 1), (5, 2), (5, 3), (3, 2)]  # ranks, and those of the first group


@pytest.mark.parametrize("ranks, first", GROUPS)
@pytest.mark.parametrize("host", EVERY)
def test_messages_of_every_form_on_all_at_once(jobs: Jobs, host: str, ranks: int, first: int) -> None:
    answers = jobs(host, ranks).run("oracle.talking:talk", first=first, seed=ranks + first, rounds=5)
    assert {"idup of merge", "dup of dup"} <= set(answers[0]["result"]) and len(answers[0]["result"]) > 19


@pytest.mark.parametrize("host", EVERY)
def test_intracommunicators_of_every_origin(jobs: Jobs, host: str, ranks: int = 4) -> None:
    answers = jobs(host, ranks).run("oracle.talking:talk", first=2, seed=5, rounds=4, between=False)
    assert "merge of from groups" in answers[0]["result"]


@pytest.mark.parametrize("ranks, first", [(2, 1), (5, 2)])
@pytest.mark.parametrize("host", EVERY)
def test_wrong_arguments_give_the_hosts_errors(jobs: Jobs, host: str, ranks: int, first: int) -> None:
    plain, ours = (
        [
            answer["result"]
            for answer in jobs(host, ranks, nearfield=nearfield).run(
                "oracle.talking:errors", first=first, left="anything"
            )
        ]
        for nearfield in (False, True)
    )
    assert all("works afterwards: True" in lines for lines in plain)
    assert ours == plain


# One rank lives elsewhere, or does not take part: all of both groups leave what concerns it to the host.
RANK = "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}"
LACKING = {
    "elsewhere": f"[ {RANK} = 3 ] && export NEARFIELD_NODE=other",
    "two nodes": f"export NEARFIELD_NODE=n$(({RANK} % 2))",
    "off": f"[ {RANK} = 1 ] && export NEARFIELD=off",
}


@pytest.mark.parametrize("how", LACKING)
@pytest.mark.parametrize("between", [True, False], ids=["messages", "origins"])
@pytest.mark.parametrize("host", EVERY)
def test_who_cannot_take_part(jobs: Jobs, host: str, between: bool, how: str, ranks: int = 4) -> None:
    job = jobs(host, ranks, before=LACKING[how])
    # Plain Open MPI 5.0.11 loses messages on communicators of sessions.
    job.run(
        "oracle.talking:talk",
        first=2,
        seed=9,
        rounds=3,
        between=between,
        partitioned=False,
        sessions=host != "openmpi",
        left="anything",
        timeout=90,
    )


@pytest.mark.parametrize("how", LACKING)
def test_collectives_where_one_cannot_take_part(
    jobs: Jobs, how: str, host: str = "openmpi", ranks: int = 4
) -> None:
    job = jobs(host, ranks, before=LACKING[how])
    job.run("oracle.collectives:by_the_host", seed=1, count=120, first=2, left="anything")
