"""Intercommunicators, and communicators of every origin: whose they are, and that they bring what the standard says."""

import re
from pathlib import Path

import pytest

from tests.mpi.jobs import Completed, carried, hosts, launch, python_of

WORKERS = Path(__file__).parent
WORKER = str(WORKERS / "worker_intercommunicators.py")
ACROSS, REDUCING = str(WORKERS / "worker_across.py"), str(WORKERS / "worker_across_reducing.py")
EVERY = hosts("mpich", "openmpi", "impi")
BOTH = hosts("mpich", "openmpi")
GROUPS = [(2, 1), (5, 1), (5, 2), (5, 3), (3, 2)]  # ranks, and those of the first group
ENV = {"NEARFIELD_STATS": "all", "NEARFIELD_STALL_SECONDS": "20"}
OURS = ["bcast", "gather", "scatter", "allgather", "alltoall", "gatherv", "scatterv", "allgatherv"]
OURS += ["alltoallv", "alltoallw"]
REDUCTIONS = ["reduce", "allreduce", "reduce_scatter_block", "reduce_scatter"]


def work(host: str, ranks: int, *arguments: object, worker: str = WORKER, **options: object) -> Completed:
    """A job of a worker, which has to end well."""
    job = launch(host, ranks, [python_of(host), worker, *map(str, arguments)], **{"timeout": 60, **options})
    assert not job.timed_out and job.returncode == 0, job.text[-4000:]
    return job


def messages_of_the_host(job: Completed) -> list[int]:
    """By rank: how many messages the host carried."""
    return [int(n) for n in re.findall(r"calls for messages +(\d+) to the host", job.stderr)]


@pytest.mark.parametrize("ranks, first", GROUPS)
@pytest.mark.parametrize("host", EVERY)
def test_messages_of_every_form_on_all_at_once(host: str, ranks: int, first: int) -> None:
    job = work(host, ranks, "messages", first, ranks + first, 5, env=ENV | {"WITH_PARTITIONED": "1"})
    assert "5 rounds on 2" in job.stdout and "idup of merge" in job.stdout, job.text
    assert messages_of_the_host(job) == [0] * ranks, job.stderr[-4000:]


@pytest.mark.parametrize("host", EVERY)
def test_intracommunicators_of_every_origin(host: str) -> None:
    job = work(host, 4, "origins", 2, 5, 4, env=ENV)
    assert messages_of_the_host(job) == [0] * 4, job.stderr[-4000:]
    assert "merge of from groups" in job.stdout, job.stdout


@pytest.mark.parametrize("ranks, first", GROUPS)
@pytest.mark.parametrize("host", EVERY)
def test_collectives(host: str, ranks: int, first: int) -> None:
    job = work(host, ranks, first, 3 * ranks + first, 120, worker=ACROSS, env=ENV)
    assert "120 cases" in job.stdout, job.text
    for name in OURS:
        assert carried(job, name) > 0, (name, job.stderr[-4000:])
    assert "not on one node" not in job.stderr, job.stderr[-4000:]
    assert messages_of_the_host(job) == [0] * ranks, job.stderr[-4000:]


@pytest.mark.parametrize("ranks, first", [*GROUPS, (4, 1)])
@pytest.mark.parametrize("host", EVERY)
def test_reductions(host: str, ranks: int, first: int) -> None:
    job = work(host, ranks, first, 5 * ranks + first, 100, worker=REDUCING, env=ENV, timeout=90)
    assert re.search(r"100 reductions on \d+ intercommunicators, [1-9]\d* beside the host", job.stdout), (
        job.text
    )
    assert host == "openmpi" or "3 forms" in job.stdout, job.text
    for name in REDUCTIONS:
        assert carried(job, name) > 0, (name, job.stderr[-4000:])
    assert "not on one node" not in job.stderr, job.stderr[-4000:]
    assert messages_of_the_host(job) == [0] * ranks, job.stderr[-4000:]


def test_the_model_of_reductions_is_right_of_a_plain_host() -> None:
    job = work("mpich", 3, 2, 1, 60, 300, worker=REDUCING, nearfield=False)
    assert "60 reductions" in job.stdout, job.text


def test_the_model_is_right_of_plain_openmpi() -> None:
    assert "80 cases" in work("openmpi", 5, 2, 1, 80, worker=ACROSS, nearfield=False).stdout


@pytest.mark.parametrize("ranks, first", [(2, 1), (5, 2)])
@pytest.mark.parametrize("host", EVERY)
def test_wrong_arguments_give_the_hosts_errors(host: str, ranks: int, first: int) -> None:
    plain = work(host, ranks, "errors", first, nearfield=False)
    ours = work(host, ranks, "errors", first, timeout=30)
    assert plain.stdout.count("works afterwards: True") == ranks
    assert sorted(ours.stdout.split("\n")) == sorted(plain.stdout.split("\n"))


# One rank lives elsewhere, or does not take part: all of both groups leave what concerns it to the host.
RANK = "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}"
LACKING = {
    "elsewhere": f"[ {RANK} = 3 ] && export NEARFIELD_NODE=other",
    "two nodes": f"export NEARFIELD_NODE=n$(({RANK} % 2))",
    "off": f"[ {RANK} = 1 ] && export NEARFIELD=off",
}


@pytest.mark.parametrize("how", LACKING)
@pytest.mark.parametrize("what", ["messages", "origins"])
@pytest.mark.parametrize("host", EVERY)
def test_who_cannot_take_part(host: str, what: str, how: str) -> None:
    program = ["sh", "-c", f'{LACKING[how]}; exec "$@"', "_", python_of(host), WORKER, what, "2", "9", "3"]
    # Plain Open MPI 5.0.11 loses messages on communicators of sessions.
    env = {"NEARFIELD_STALL_SECONDS": "20"} | ({"WITHOUT_SESSIONS": "1"} if host == "openmpi" else {})
    job = launch(host, 4, program, env=env, timeout=90)
    assert not job.timed_out and job.returncode == 0 and "3 rounds" in job.stdout, job.text[-4000:]


@pytest.mark.parametrize("how", LACKING)
@pytest.mark.parametrize("worker", [ACROSS, REDUCING], ids=["moving", "reducing"])
def test_collectives_where_one_cannot_take_part(how: str, worker: str) -> None:
    arguments = [python_of("openmpi"), worker, "2", "1", "60"]
    env = {"NEARFIELD_STALL_SECONDS": "20", "BLOCKING_ALONE": "1"}
    job = launch(
        "openmpi", 4, ["sh", "-c", f'{LACKING[how]}; exec "$@"', "_", *arguments], env=env, timeout=60
    )
    assert not job.timed_out and job.returncode == 0 and "60 " in job.stdout, job.text[-4000:]
