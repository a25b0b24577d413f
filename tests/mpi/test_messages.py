"""Point to point under real MPIs: random programs against MPI's rules of matching, scenarios in C, faults."""

import re

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.mpi.jobs import EVERYTHING, compile_c, hosts, report_after_kill
from tests.mpi.resident import Jobs
from tests.mpi.scenario_jobs import good_scenarios

PROTOCOLS = ["auto", "queue", "fastbox", "copy-buffers", "cma", "mapped"]
ALL = hosts()


MESSAGES = st.fixed_dictionaries(
    {
        "source": st.integers(0, 3),
        "dest": st.integers(0, 3),
        "comm": st.integers(0, 3),
        "tag": st.sampled_from([0, 1, 30000]),
        # Around every boundary between protocols: a line, a cell, an eager message, a block, a ring of copy buffers.
        "bytes": st.one_of(
            st.integers(0, 100),
            st.sampled_from(
                [504, 505, 1024, 1025, 1960, 1961, 8191, 8192, 8193, 16384, 16385, 65537, 262145]
            ),
        ),
        "mode": st.integers(0, 7),
        "stride": st.integers(0, 2),
    }
)
ROUNDS = st.fixed_dictionaries(
    {
        "messages": st.lists(MESSAGES, min_size=1, max_size=25),
        "wild": st.integers(0, 1 << 30),
        "style": st.integers(0, 1 << 30),
    }
)


@pytest.mark.parametrize("ranks, heap", [(2, "shared"), (3, "off"), (4, "shared")])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_random_programs_by_every_protocol(jobs: Jobs, protocol: str, ranks: int, heap: str) -> None:
    job = jobs("mpich", ranks, {"NEARFIELD_PROTOCOL": protocol, "NEARFIELD_HEAP": heap})
    job.run("oracle.messages:drawn", seed=ranks, rounds=25, timeout=150)

    # The same programs on every run: CI must not fail for a reason that the change did not bring.
    @settings(
        max_examples=3,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(program=st.lists(ROUNDS, min_size=10, max_size=40))
    def programs_by_hypothesis(program: list[dict]) -> None:
        job.run("oracle.messages:program", rounds=program, timeout=150)

    programs_by_hypothesis()


@pytest.mark.parametrize("ranks", [1, 2, 5, 9])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_random_programs_on_every_host(jobs: Jobs, host: str, ranks: int) -> None:
    job = jobs(host, ranks)
    answers = job.run("oracle.messages:drawn", seed=100 + ranks, rounds=80, seconds=8, timeout=150)
    assert answers[0]["result"] > 0


SCENARIOS = ["host_blocks", "contexts", "buffered_again", "unattended"]


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("host", ALL)
def test_scenarios(host: str, ranks: int) -> None:
    good_scenarios(host, ranks, *(f"messages_{name}" for name in SCENARIOS))


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("host", ALL)
def test_errors(host: str, ranks: int) -> None:
    # What is wrong the host says.
    good_scenarios(host, ranks, "messages_errors", served=EVERYTHING.but("messages"))


@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_buffers_of_sessions(host: str) -> None:
    # As plain MPICH and Intel MPI; Open MPI has none of its own.
    good_scenarios(host, 2, "sessions_buffers")


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("host", ALL)
def test_threads(host: str, ranks: int) -> None:
    good_scenarios(host, ranks, "messages_threads", threads=True)


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_a_program_that_receives_nothing_ends(host: str) -> None:
    good_scenarios(host, 3, "messages_never_received")


@pytest.mark.parametrize("reach", ["^cma", "^mapped,^cma"])
def test_scenarios_without_reach(reach: str) -> None:
    env = {"NEARFIELD_REACH": reach, "NEARFIELD_HEAP": "off"}
    good_scenarios("mpich", 4, "messages_host_blocks", "messages_unattended", env=env)
    good_scenarios("mpich", 4, "messages_threads", env=env, threads=True)


def test_a_rank_killed_in_a_transfer_is_reported() -> None:
    report = report_after_kill(4, [compile_c("mpich", "killed.c"), "messages"])
    assert re.search(r"MPI_\w+: process \d+ \(rank 1 .*has ended; rank 0 was", report), report


@pytest.mark.parametrize("host", ALL)
def test_a_receive_leaves_what_is_behind_its_message(host: str) -> None:
    (done,) = good_scenarios(host, 2, "messages_ahead")
    kept = [rank.counts["messages_unexpected"] for rank in done.job.statistics]
    # Before there is a fastbox messages come by the queue, which is emptied.
    assert len(kept) == 2 and max(kept) < 50, done.job.text[-3000:]
