"""The test bed of several nodes: that they are nodes, that what crosses is counted, slowed, stalled, and that they can die.

Debian's MPICH is not among the hosts: over several nodes its MPI_Finalize hangs in most runs, without Nearfield too.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from nearfield.statistics import VARIABLE
from tests.mpi.jobs import HOSTS, environment, hosts
from tests.nodes.bed import Nodes
from tests.nodes.beds import MAIN, empty_statistics, made_or_skip, program, statistics_in
from tests.nodes.jobs import Ended, blocks, round_robin, run_job
from tests.nodes.slurm import Slurm
from tests.selection import FULL, per_change

EVERY = per_change(hosts("mpich", "openmpi", "impi", "debian-openmpi"), 2)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with made_or_skip(Nodes(3)) as three:
        yield three


def run(nodes: Nodes, host: str, placement: list[int], command: list[str], nearfield: bool = True) -> Ended:
    """Runs a job to its end, which has to be a good one."""
    env = environment(host, nearfield, {VARIABLE: empty_statistics(nodes)} if nearfield else {})
    ended = run_job(nodes, HOSTS[host], placement, command, env, timeout=30)
    assert ended.returncode == 0 and not ended.timed_out, ended.text
    return ended


def expect_ring(nodes: Nodes, ended: Ended, placement: list[int]) -> None:
    """Each rank was where it belongs and with whom, and has got its message."""
    size = len(placement)
    for rank, node in enumerate(placement):
        near = [r for r in range(size) if placement[r] == node]
        assert ended.out[rank] == (
            f"rank {rank} of {size} on {nodes.names[node]} with {len(near)} after {(rank - 1) % size} sum {sum(near)}\n"
        )


@pytest.mark.parametrize("nearfield", per_change([True, False]), ids=["nearfield", "plain"])
@pytest.mark.parametrize("host", EVERY)
def test_ranks_live_on_their_nodes(nodes: Nodes, host: str, nearfield: bool) -> None:
    placement = blocks(2, 2)
    ended = run(nodes, host, placement, program(host, "ring.c"), nearfield)
    expect_ring(nodes, ended, placement)
    if nearfield:  # the first rank's node is served, what spans nodes is not reached into
        allreduce = statistics_in(nodes)[0].operations["allreduce"]
        assert (allreduce.calls, allreduce.to_the_host) == (1, 0), allreduce


@pytest.mark.parametrize(
    "placement", per_change([[0, 1, 1, 0, 2], round_robin(2, 2, 1)]), ids=["any", "round robin, one alone"]
)
@pytest.mark.parametrize("host", MAIN)
def test_ranks_can_be_placed_anyhow(nodes: Nodes, host: str, placement: list[int]) -> None:
    expect_ring(nodes, run(nodes, host, placement, program(host, "ring.c")), placement)


@FULL
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "debian-openmpi"))
def test_slurm_starts_jobs_too(nodes: Nodes, host: str) -> None:
    placement = blocks(2, 2) if host == "mpich" else blocks(2, 1, 1)
    env = environment(host, True)
    with made_or_skip(Slurm(nodes)) as slurm:
        ended = run_job(nodes, HOSTS[host], placement, program(host, "ring.c"), env, 30, slurm)
    assert ended.returncode == 0 and not ended.timed_out, ended.text
    expect_ring(nodes, ended, placement)


@FULL
@pytest.mark.parametrize("host", MAIN)
def test_nodes_can_have_processes_of_their_own(host: str) -> None:
    with made_or_skip(Nodes(2, apart=True)) as nodes:
        expect_ring(nodes, run(nodes, host, blocks(2, 1), program(host, "ring.c")), blocks(2, 1))


@pytest.mark.parametrize("host", MAIN)
def test_ranks_notice_that_another_node_has_their_cpus(host: str) -> None:
    """No node has more ranks than CPUs, both together do."""
    ranks = len(os.sched_getaffinity(0))
    with made_or_skip(Nodes(2)) as nodes:
        ranks += ranks % 2
        run(nodes, host, blocks(ranks, ranks), program(host, "sharing.c", "1000"))
        every = statistics_in(nodes)
    assert len(every) == 2 * ranks
    assert all(rank.counts["contention"] > 0 for rank in every), [rank.counts["contention"] for rank in every]


def test_memory_that_nodes_share_is_found(nodes: Nodes) -> None:
    code = (
        "import mmap, sys, time; file = open(sys.argv[1], 'r+b'); m = mmap.mmap(file.fileno(), 4096)\n"
        "print('mapped', flush=True); time.sleep(60)"
    )
    file = nodes.files / "shared"
    file.write_bytes(bytes(4096))
    for name in nodes.names[:2]:
        command = nodes.enter(name, [sys.executable, "-c", code, str(file)])
        assert subprocess.Popen(command, stdout=subprocess.PIPE, text=True).stdout.readline() == "mapped\n"
    found = nodes.shared_memory()
    nodes.kill_all()
    assert len(found) == 1 and str(file) in found.pop()


@FULL
@pytest.mark.parametrize("host", EVERY)
def test_what_crosses_is_counted(nodes: Nodes, host: str) -> None:
    before = nodes.traffic(0)
    ended = run(
        nodes, host, blocks(2, 1), program(host, "internode_traffic.c", str(1 << 20)), nearfield=False
    )
    sent = [int(n) for n in re.findall(r"to \d: (\d+) bytes", ended.out[0])]
    near, far = sent
    assert near < 10_000, "the host's own shared memory stays within the node"
    assert 1 << 20 <= far < 1.1 * (1 << 20)
    crossed = nodes.traffic(0) - before
    assert crossed.sent_bytes >= 2 * far - 10_000, (
        "the node's own counters see this message and the one before"
    )
    assert crossed.segments > crossed.sent_bytes / 65536
