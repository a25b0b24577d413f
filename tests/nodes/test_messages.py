"""Messages of communicators that span nodes: near ones are ours, others the host's, receives from anybody are met by both.

Plain MPICH over UCX loses receives from anybody for which something has come from another node already, and the same
program over it hangs now and then with Nearfield too. Here MPICH goes by libfabric.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from nearfield.statistics import VARIABLE
from tests.mpi.jobs import HOSTS, ROOT, environment, hosts, python_of
from tests.nodes.bed import Nodes
from tests.nodes.beds import empty_statistics, made_or_skip, program, statistics_in
from tests.nodes.feeding import Fed
from tests.nodes.jobs import Ended, blocks, round_robin, run_job
from tests.selection import FULL, per_change

THREE = per_change(hosts("mpich", "openmpi", "impi"), 2)
SUITE = ROOT / ".hosts/mpi4py-tests/test"
PLACEMENTS = {"any": [0, 1, 0, 2, 1], "blocks": blocks(2, 2), "round robin": round_robin(2, 2, 1)}


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with made_or_skip(Nodes(3)) as three:
        yield three


def settings(host: str) -> dict[str, str]:
    """Of a host, in the environment."""
    return {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"} if host == "mpich" else {}


def play(nodes: Nodes, host: str, placement: list[int], do: str, **arguments: Any) -> None:
    """Random messages by the oracle's functions, of which those that are near have to be ours."""
    job = Fed(nodes, host, placement, settings(host) | {VARIABLE: empty_statistics(nodes)})
    job.run(do, left="anything", timeout=90, **arguments)
    job.end()
    assert sum(rank.sent for rank in statistics_in(nodes)) > 10


@pytest.mark.parametrize("placement", per_change(PLACEMENTS))
@pytest.mark.parametrize("seconds", per_change([4, 30]), ids=["short", "long"])
@pytest.mark.parametrize("host", THREE)
def test_receives_from_anybody_are_met_by_either_side(
    nodes: Nodes, host: str, placement: str, seconds: int
) -> None:
    # Plain MPICH 5.0.2 never ends a synchronous send to another node that is longer than its receive.
    steps = ["round", "cancelled", "ready", *(["truncated"] if host == "openmpi" else [])]
    where = PLACEMENTS[placement]
    play(nodes, host, where, "oracle.programs:walk", seed=seconds, steps=400, seconds=seconds, names=steps)


# Plain Open MPI 5.0.11 loses messages on communicators of sessions, MPICH has no partitioned ones between nodes.
@pytest.mark.parametrize("host", THREE)
def test_communicators_of_every_origin_have_messages(nodes: Nodes, host: str) -> None:
    what = {"between": False, "partitioned": False, "sessions": host != "openmpi"}
    play(nodes, host, blocks(2, 2), "oracle.talking:talk", first=2, seed=3, rounds=2, **what)


def run(nodes: Nodes, host: str, command: list[str], timeout: float = 90) -> Ended:
    """Runs a job of two nodes of two ranks to its end, which has to be a good one."""
    env = environment(host, True, settings(host))
    ended = run_job(nodes, HOSTS[host], blocks(2, 2), command, env, timeout)
    assert ended.returncode == 0 and not ended.timed_out, ended.text[-4000:]
    return ended


@pytest.mark.parametrize("host", THREE)
def test_several_threads_receive_from_anybody(nodes: Nodes, host: str) -> None:
    messages = "10" if host == "impi" else "60"  # its threads wait for their time slices
    ended = run(nodes, host, program(host, "wild_threads.c", messages))
    assert set(ended.out) <= {"good\n", "no threads\n"}, ended.text


@pytest.mark.parametrize("host", THREE)
def test_receives_outlive_their_communicators_and_requests(nodes: Nodes, host: str) -> None:
    assert run(nodes, host, program(host, "outlived.c")).out == ["good\n"] * 4


# What makes calls of messages takes a minute on Open MPI; on MPICH, whose collectives take milliseconds there, too long.
MODULES = ["p2p", "request", "msgspec"]


@FULL
@pytest.mark.parametrize("host", hosts("openmpi"))
def test_mpi4pys_messages(nodes: Nodes, host: str) -> None:
    selection = [word for module in MODULES for word in ("-i", f"test_{module}")]
    ended = run(nodes, host, [python_of(host), str(SUITE / "main.py"), "-v", *selection], timeout=400)
    ran = re.search(r"Ran (\d+) tests", ended.err[0])
    assert ran and int(ran[1]) > 200 and not re.search(r"^(FAIL|ERROR):", ended.text, re.MULTILINE), (
        ended.text[-4000:]
    )
