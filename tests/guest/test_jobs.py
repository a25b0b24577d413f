"""Nearfield in a guest: with several NUMA nodes, with nodes without CPUs, everything works, and lies where ranks run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.guest import placed
from tests.guest.guest import Guest
from tests.guest.machines import MACHINES
from tests.guest.placed import MIB, RANKS, pages
from tests.mpi.jobs import BUILD, ROOT, carried

ENGINE_TESTS = (
    "placement_test",
    "topology_test",
    "memory_test",
    "copy_buffers_test",
    "reach_test",
    "meeting_test",
)


@pytest.mark.parametrize("name", list(MACHINES))
def test_jobs_work_and_lie_where_they_run(booted: Callable[[str], Guest], name: str) -> None:
    guest = booted(name)
    job = placed.run(guest, "traffic", "segment", "heap", 8 * MIB, "alloc", 4 * MIB, "-")
    for operation in ("allreduce", "alltoall", "reduce_scatter_block", "barrier"):
        assert carried(job.completed, operation) >= 3, job.completed.text
    with_cpus = {index for index, node in enumerate(guest.machine.nodes) if node.cpus}
    for rank in range(RANKS):
        near = guest.machine.node_of(rank)
        # Pages are where who first touched them ran; that can be a peer.
        assert near in job.of("segment")[rank] and set(job.of("segment")[rank]) <= with_cpus
        assert job.of("heap")[rank] == {near: pages(8 * MIB)}
        assert job.of("alloc")[rank] == {near: pages(4 * MIB)}
    assert not job.counts


def test_open_mpi_works(per_socket: Guest) -> None:
    job = placed.run(per_socket, "traffic", "heap", MIB, host="openmpi")
    assert carried(job.completed, "allreduce") == 3, job.completed.text
    assert all(sum(lying.values()) == pages(MIB) for lying in job.of("heap").values())


@pytest.mark.parametrize("name", ENGINE_TESTS)
def test_the_engine_passes_its_tests(per_socket: Guest, name: str) -> None:
    program = ROOT / "build" / BUILD / "bin" / name
    ended = per_socket.run([str(program), "--gtest_brief=1"], timeout=120)
    assert ended.returncode == 0, ended.text[-3000:]
    assert " PASSED " in ended.stdout, ended.text[-3000:]
