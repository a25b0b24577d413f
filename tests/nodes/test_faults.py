"""Collectives over nodes when a node dies, when the network stalls or is slow, when messages are under way meanwhile, and when
communicators come and go.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from tests.mpi.jobs import HOSTS, environment
from tests.nodes.bed import Nodes
from tests.nodes.beds import MAIN, ROWS, forced, made_or_skip, program
from tests.nodes.jobs import Job, blocks, run_job
from tests.selection import FULL, per_change

OURS = "leader,lanes,pipelined"  # tried one after the other
either = pytest.mark.parametrize("names", ["", OURS], ids=["free", "ours"])


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with made_or_skip(Nodes(2, own_cpus=True)) as two:
        yield two


def environment_of(host: str, names: str) -> dict[str, str]:
    """A job's environment in which the named rows are forced."""
    return environment(host, True, {"NEARFIELD_ALGORITHM": forced(*names.split(","))} if names else {})


def begun(nodes: Nodes, host: str, placement: list[int], seconds: str, names: str) -> Job:
    """A job that calls collectives all the time, once it does."""
    env = environment_of(host, names)
    job = Job(nodes, HOSTS[host], placement, program(host, "collecting.c", seconds), env)
    end = time.monotonic() + 30
    while "begun" not in job.output(0):
        assert time.monotonic() < end and job.launcher.poll() is None, job.wait(0).text
        time.sleep(0.02)
    return job


@pytest.mark.parametrize("names", per_change(["", *ROWS]))
@pytest.mark.parametrize("host", MAIN)
def test_a_job_ends_when_a_node_dies_in_a_collective(nodes: Nodes, host: str, names: str) -> None:
    job = begun(nodes, host, blocks(2, 2), "60", names)
    shared = nodes.shared_memory()
    nodes.kill(1)
    ended = job.wait(20)
    assert not shared, "ranks have mapped memory of another node"
    # Open MPI's launcher says what happened and returns 0.
    assert not ended.timed_out and "longest pause" not in ended.out[0], ended.text
    assert ended.returncode != 0 or nodes.names[1] in ended.launcher, ended.text
    end = time.monotonic() + 5
    while any(nodes.processes(node) for node in range(2)):
        assert time.monotonic() < end, "the ranks on the other node live on"
        time.sleep(0.05)


@FULL
@either
@pytest.mark.parametrize("host", MAIN)
def test_collectives_go_on_after_the_network_stalled(nodes: Nodes, host: str, names: str) -> None:
    job = begun(nodes, host, blocks(2, 1), "3", names)
    with nodes.stalled():
        time.sleep(2)
    ended = job.wait(40)
    assert ended.returncode == 0 and not ended.timed_out, ended.text
    assert float(re.search(r"longest pause: ([\d.]+) s", ended.out[0])[1]) > 1.5


@FULL
@either
@pytest.mark.parametrize("host", MAIN)
def test_collectives_are_right_on_a_slow_network(host: str, names: str) -> None:
    with made_or_skip(Nodes(2, delay=1000, rate=1e9, own_cpus=True)) as slow:
        ended = begun(slow, host, blocks(2, 2), "2", names).wait(40)
    assert ended.returncode == 0 and not ended.timed_out, ended.text
    assert int(re.search(r"of (\d+) rounds", ended.out[0])[1]) >= 3


# The host's own collectives know of no message of ours.
@pytest.mark.parametrize("names", per_change([OURS, "host", ""], 2), ids=["ours", "host", "free"])
@pytest.mark.parametrize("host", MAIN)
def test_messages_go_on_while_their_sender_is_in_a_collective(nodes: Nodes, host: str, names: str) -> None:
    """Both to near ranks, while it waits for other nodes, and to far ones, while it waits for near ranks."""
    env = environment_of(host, names)
    ended = run_job(nodes, HOSTS[host], blocks(2, 2), program(host, "under_way.c", "16"), env, timeout=40)
    assert ended.returncode == 0 and not ended.timed_out, ended.text
    assert ended.out == ["good\n"] * 4, ended.text


@pytest.mark.parametrize("host", per_change(MAIN))
def test_communicators_leave_nothing_behind(nodes: Nodes, host: str) -> None:
    env = environment_of(host, OURS)
    ended = run_job(nodes, HOSTS[host], blocks(2, 1), program(host, "freeing.c", "200"), env, timeout=90)
    assert ended.returncode == 0 and not ended.timed_out, ended.text
    for text in ended.out:
        early, late = [list(map(int, found)) for found in re.findall(r": (\d+) (\d+) (\d+) KiB", text)]
        assert late[:2] == early[:2] and late[2] < early[2] + 4096, text
