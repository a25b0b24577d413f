"""Point to point under real MPIs: random programs against MPI's rules of matching, scenarios in C, faults."""

import re

import pytest

from tests.mpi.jobs import EVERYTHING, compile_c, hosts, report_after_kill
from tests.mpi.resident import Jobs
from tests.mpi.scenario_jobs import good_scenarios

PROTOCOLS = ["auto", "queue", "fastbox", "copy-buffers", "cma", "mapped"]
ALL = hosts()


@pytest.mark.parametrize("ranks, heap", [(2, "shared"), (3, "off"), (4, "shared")])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_random_programs_by_every_protocol(jobs: Jobs, protocol: str, ranks: int, heap: str) -> None:
    job = jobs("mpich", ranks, {"NEARFIELD_PROTOCOL": protocol, "NEARFIELD_HEAP": heap})
    job.run("oracle.messages:drawn", seed=ranks, rounds=60, timeout=150)


@pytest.mark.parametrize("ranks", [1, 2, 5, 9])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_random_programs_on_every_host(jobs: Jobs, host: str, ranks: int) -> None:
    job = jobs(host, ranks)
    answers = job.run("oracle.messages:drawn", seed=100 + ranks, rounds=80, seconds=8, timeout=150)
    assert answers[0]["result"] > 0


@pytest.mark.parametrize("host", ALL)
def test_errors(host: str) -> None:
    # What is wrong the host says.
    good_scenarios(host, 2, "messages_errors", served=EVERYTHING.but("messages"))


@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_buffers_of_sessions(host: str) -> None:
    # As plain MPICH and Intel MPI; Open MPI has none of its own.
    good_scenarios(host, 2, "sessions_buffers")


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_buffered_sends_find_room_while_a_thread_polls(host: str) -> None:
    good_scenarios(host, 2, "messages_buffered_beside_polls", threads=True)


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_a_program_that_waits_for_nothing_ends(host: str) -> None:
    good_scenarios(host, 3, "messages_unattended", "messages_never_received")


def test_a_rank_killed_in_a_transfer_is_reported() -> None:
    report = report_after_kill(4, [compile_c("mpich", "killed.c"), "messages"])
    assert re.search(r"MPI_\w+: process \d+ \(rank 1 .*has ended; rank 0 was", report), report


@pytest.mark.parametrize("host", ALL)
def test_a_receive_leaves_what_is_behind_its_message(host: str) -> None:
    (done,) = good_scenarios(host, 2, "messages_ahead")
    kept = [rank.counts["messages_unexpected"] for rank in done.job.statistics]
    # Before there is a fastbox messages come by the queue, which is emptied.
    assert len(kept) == 2 and max(kept) < 50, done.job.text[-3000:]
