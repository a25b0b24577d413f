"""Point to point under real MPIs: random programs against MPI's rules of matching, scenarios in C, faults."""

import re

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.mpi.jobs import compile_c, hosts, launch, report_after_kill
from tests.mpi.resident import Jobs

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


@pytest.mark.parametrize("scenario", ["errors", "host-blocks", "mixed", "contexts", "threads", "unattended"])
@pytest.mark.parametrize("host", ALL)
def test_scenarios(host: str, scenario: str) -> None:
    program = [compile_c(host, "messages.c"), scenario]
    for ranks in (2, 4):
        job = launch(host, ranks, program, env={"NEARFIELD_STALL_SECONDS": "20"}, timeout=60)
        assert not job.timed_out and job.returncode == 0 and "good" in job.stdout, job.text[-3000:]


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_a_program_that_receives_nothing_ends(host: str) -> None:
    job = launch(host, 3, [compile_c(host, "messages.c"), "never-received"], timeout=30)
    assert not job.timed_out and "good" in job.stdout, job.text[-3000:]


@pytest.mark.parametrize("reach", ["^cma", "^mapped,^cma"])
def test_scenarios_without_reach(reach: str) -> None:
    program = compile_c("mpich", "messages.c")
    for scenario in ("host-blocks", "threads", "unattended"):
        env = {"NEARFIELD_REACH": reach, "NEARFIELD_HEAP": "off"}
        job = launch("mpich", 4, [program, scenario], env=env, timeout=60)
        assert not job.timed_out and "good" in job.stdout, job.text[-3000:]


def test_a_rank_killed_in_a_transfer_is_reported() -> None:
    report = report_after_kill(4, [compile_c("mpich", "messages.c"), "forever"])
    assert re.search(r"MPI_\w+: process \d+ \(rank 1 .*has died; rank 0 was", report), report


@pytest.mark.parametrize("host", ALL)
def test_a_receive_leaves_what_is_behind_its_message(host: str) -> None:
    job = launch(host, 2, [compile_c(host, "ahead.c")], env={"NEARFIELD_STATS": "all"}, timeout=60)
    assert not job.timed_out and job.returncode == 0 and "good" in job.stdout, job.text[-3000:]
    kept = [int(number) for number in re.findall(r"(\d+) received before their receive was posted", job.text)]
    # Before there is a fastbox messages come by the queue, which is emptied.
    assert len(kept) == 2 and max(kept) < 50, job.text[-3000:]
