"""Messages of communicators that span nodes: near ones are ours, others the host's, receives from anybody are met by both.

Plain MPICH over UCX loses receives from anybody for which something has come from another node already, and the same
program over it hangs now and then with Nearfield too. Here MPICH goes by libfabric.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from nearfield.statistics import VARIABLE
from tests.mpi.jobs import HOSTS, ROOT, environment, hosts, python_of
from tests.nodes.bed import Nodes
from tests.nodes.beds import MAIN, empty_statistics, made_or_skip, program, statistics_in
from tests.nodes.jobs import Ended, Job, blocks, round_robin
from tests.selection import FULL, per_change

THREE = per_change(hosts("mpich", "openmpi", "impi"), 2)
SUITE = ROOT / ".hosts/mpi4py-tests/test"


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with made_or_skip(Nodes(3)) as three:
        yield three


def begin(nodes: Nodes, host: str, placement: list[int], command: list[str], algorithm: str = "") -> Job:
    """A job under Nearfield."""
    extra = {VARIABLE: empty_statistics(nodes), "NEARFIELD_ALGORITHM": algorithm}
    if host == "mpich":
        extra |= {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"}
    return Job(nodes, HOSTS[host], placement, command, environment(host, True, extra))


def run(
    nodes: Nodes,
    host: str,
    placement: list[int],
    command: list[str],
    timeout: float = 90,
    algorithm: str = "",
) -> Ended:
    """Runs a job to its end, which has to be a good one."""
    ended = begin(nodes, host, placement, command, algorithm).wait(timeout)
    assert ended.returncode == 0 and not ended.timed_out, ended.text[-4000:]
    return ended


def wild(host: str, rounds: int, seed: int = 1) -> list[str]:
    """The program of random messages; few rounds where collectives are slow."""
    return program(host, "wild.c", str(rounds if host == "openmpi" else rounds // 3), str(seed))


def expect_rounds(nodes: Nodes, ended: Ended) -> None:
    """All ranks have played all rounds, and what was near was ours."""
    assert all(re.fullmatch(r"begun\n\d+ rounds\n", out) for out in ended.out), ended.text[-4000:]
    assert statistics_in(nodes)[0].sent > 10, ended.err[0]


LENGTHS = pytest.mark.parametrize("times", per_change([1, 5]), ids=["short", "long"])


@pytest.mark.parametrize(
    "placement",
    per_change([[0, 1, 0, 2, 1], blocks(2, 2), round_robin(2, 2, 1)]),
    ids=["any", "blocks", "round robin"],
)
@LENGTHS
@pytest.mark.parametrize("host", THREE)
def test_receives_from_anybody_are_met_by_either_side(
    nodes: Nodes, host: str, placement: list[int], times: int
) -> None:
    rounds = 200 * times if host == "openmpi" else 9 * times + 27
    expect_rounds(nodes, run(nodes, host, placement, wild(host, rounds)))


@LENGTHS
@pytest.mark.parametrize("host", THREE)
def test_they_are_posted_at_the_host_where_it_blocks(nodes: Nodes, host: str, times: int) -> None:
    """Its own collectives, in which it knows of no message of ours."""
    collectives = ";".join(f"{op}:host" for op in ("barrier", "bcast", "allreduce", "allgather"))
    rounds = 1000 * times if host == "openmpi" else 18 * times + 27
    expect_rounds(nodes, run(nodes, host, [0, 1, 1, 0], wild(host, rounds, 2), algorithm=collectives))


@pytest.mark.parametrize("host", THREE)
def test_several_threads_receive_from_anybody(nodes: Nodes, host: str) -> None:
    messages = "10" if host == "impi" else "60"  # its threads wait for their time slices
    ended = run(nodes, host, blocks(2, 2), program(host, "wild_threads.c", messages))
    assert set(ended.out) <= {"good\n", "no threads\n"}, ended.text


@pytest.mark.parametrize("host", THREE)
def test_what_else_becomes_of_receives_from_anybody(nodes: Nodes, host: str) -> None:
    ended = run(nodes, host, blocks(2, 2), program(host, "wild_edges.c"))
    assert ended.out == ["good\n"] * 4, ended.text


ROUNDS = st.tuples(
    st.integers(0, 1 << 20),  # seed
    st.integers(1, 63),  # messages
    st.integers(0, 7),  # way
    *[st.integers(0, 1)] * 4,  # early, by_tag, late, world
)


@FULL
@pytest.mark.parametrize("host", MAIN)
def test_programs_that_hypothesis_writes(nodes: Nodes, host: str) -> None:
    path = nodes.files / "program"

    @settings(
        max_examples=10,
        deadline=None,
        phases=[Phase.generate],  # what hangs takes its whole time at every step of shrinking
        suppress_health_check=list(HealthCheck),
    )
    @given(
        rounds=st.lists(ROUNDS, min_size=30, max_size=60),
        placement=st.sampled_from([blocks(2, 2), [0, 1, 1, 0], blocks(3, 1), blocks(2, 1, 2)]),
    )
    def play(rounds: list[tuple[int, ...]], placement: list[int]) -> None:
        path.write_text("".join(" ".join(map(str, each)) + "\n" for each in rounds))
        ended = run(nodes, host, placement, program(host, "wild.c", str(path)))
        assert ended.out[0] == f"begun\n{len(rounds)} rounds\n"

    play()


def begun(job: Job) -> Job:
    """Waits until its ranks talk."""
    end = time.monotonic() + 30
    while "begun" not in job.output(0):
        assert time.monotonic() < end and job.launcher.poll() is None, job.wait(0).text
        time.sleep(0.05)
    return job


@FULL
@pytest.mark.parametrize("host", MAIN)
def test_a_network_that_stalls_delays_them_only(nodes: Nodes, host: str) -> None:
    job = begun(begin(nodes, host, blocks(2, 2), wild(host, 60)))
    with nodes.stalled():
        time.sleep(2)
    ended = job.wait(90)
    assert ended.returncode == 0 and not ended.timed_out, ended.text
    expect_rounds(nodes, ended)


@FULL
@pytest.mark.parametrize("host", MAIN)
def test_a_node_that_dies_in_the_middle_ends_the_job(nodes: Nodes, host: str) -> None:
    job = begun(begin(nodes, host, blocks(2, 2), wild(host, 1_000_000)))
    time.sleep(0.5)
    nodes.kill(1)
    ended = job.wait(30)
    assert not ended.timed_out and "rounds" not in ended.out[0], ended.text


# What makes calls of messages takes a minute on Open MPI; on MPICH, whose collectives take milliseconds there, too long.
MODULES = ["p2p", "request", "msgspec"]


@FULL
@pytest.mark.parametrize("host", hosts("openmpi"))
def test_mpi4pys_messages(nodes: Nodes, host: str) -> None:
    selection = [word for module in MODULES for word in ("-i", f"test_{module}")]
    ended = run(
        nodes, host, blocks(2, 2), [python_of(host), str(SUITE / "main.py"), "-v", *selection], timeout=400
    )
    ran = re.search(r"Ran (\d+) tests", ended.err[0])
    assert ran and int(ran[1]) > 200 and not re.search(r"^(FAIL|ERROR):", ended.text, re.MULTILINE), (
        ended.text[-4000:]
    )
