"""Placement, asked of the kernel: what NEARFIELD_MEMORY and the key nearfield_memory ask for lies there, page by page.

The program (programs/placed.c) asks by move_pages and numa_maps; Nearfield's statistics have to say the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.guest import placed
from tests.guest.guest import Guest
from tests.guest.machines import HBM, Machine
from tests.guest.placed import MIB, PAGE, RANKS, Counts, Lies, pages

SEGMENT = ("fastboxes", "copy-buffers", "control")  # components in the ranks' own segments
RESULT = dict[int, dict[int | str, int]]


def everywhere(count: int, *nodes: int) -> RESULT:
    """Every rank has `count` bytes on its node: the only one given, or the one at its rank."""
    return {rank: {nodes[rank % len(nodes)]: pages(count)} for rank in range(RANKS)}


def agrees(job: Lies, component: str, asked: int) -> None:
    """The statistics of rank 0: so many bytes were asked for, and all of them lie there."""
    assert job.counts[component] == Counts(asked, asked, 0, 0), job.completed.stderr


def hbm_of(machine: Machine, rank: int) -> int:
    """The HBM node beside a rank's CPU."""
    home = machine.node_of(rank)
    return next(
        index
        for index, node in enumerate(machine.nodes)
        if node.beside == home and node.bandwidth == HBM["bandwidth"]
    )


@pytest.mark.parametrize("name", ["flat", "per-socket"])
def test_all_that_nearfield_allocates_lies_on_each_rank_s_hbm(
    booted: Callable[[str], Guest], name: str
) -> None:
    guest = booted(name)
    own = [hbm_of(guest.machine, rank) for rank in range(RANKS)]
    job = placed.run(
        guest, "traffic", "segment", "heap", 8 * MIB, "alloc", 4 * MIB, "-", memory="all:bandwidth"
    )
    for rank in range(RANKS):
        assert set(job.of("segment")[rank]) == {own[rank]}
    assert job.of("heap") == everywhere(8 * MIB, *own)
    assert job.of("alloc") == everywhere(4 * MIB, *own)
    for component in SEGMENT:
        assert job.counts[component].asked > 0
        agrees(job, component, job.counts[component].asked)
    # Nothing of the segment that is not some component's.
    assert job.of("segment")[0][own[0]] == pages(sum(job.counts[component].asked for component in SEGMENT))


@pytest.mark.parametrize("component", SEGMENT)
def test_a_component_lies_where_it_is_asked_for_and_the_others_do_not(flat: Guest, component: str) -> None:
    job = placed.run(
        flat, "traffic", "segment", "heap", MIB, "alloc", MIB, "-", memory=f"{component}:bandwidth"
    )
    assert set(job.counts) == {component}
    asked = job.counts[component].asked
    assert asked > 0
    agrees(job, component, asked)
    # Rank 0's statistics and its own page table: as many pages as were asked for, and others elsewhere.
    assert job.of("segment")[0][1] == pages(asked)
    assert job.of("segment")[0][0] > 0
    assert job.of("heap") == everywhere(MIB, 0)
    assert job.of("alloc") == everywhere(MIB, 0)


def test_the_heap_lies_where_it_is_asked_for(flat: Guest) -> None:
    job = placed.run(flat, "heap", 32 * MIB, "segment", "alloc", MIB, "-", memory="heap:bandwidth")
    assert job.of("heap") == everywhere(32 * MIB, 1)
    assert job.of("alloc") == everywhere(MIB, 0)
    assert all(1 not in lying for lying in job.of("segment").values())
    counted = job.counts["heap"]
    assert counted.asked >= 32 * MIB and counted.elsewhere == 0


def test_memory_of_the_program_lies_where_its_hint_says(per_socket: Guest) -> None:
    hints = {
        "bandwidth": (2, 2, 3, 3),
        "latency": (0, 0, 1, 1),
        "local": (0, 0, 1, 1),
        "3": (3,),
        "1,forced": (1,),
        "-": (0, 0, 1, 1),  # none: the kernel's choice, and not counted
    }
    job = placed.run(per_socket, *(word for hint in hints for word in ("alloc", 3 * MIB, hint)))
    for time, (hint, nodes) in enumerate(hints.items()):
        assert job.of("alloc", time) == everywhere(3 * MIB, *nodes), hint
    agrees(job, "alloc-mem", 15 * MIB)


def test_the_best_that_a_rank_has_and_the_largest_node(tiers: Guest) -> None:
    """One socket has HBM; from the other the kernel tells the speed of its own memory alone."""
    job = placed.run(tiers, "alloc", 4 * MIB, "bandwidth", "alloc", 4 * MIB, "capacity")
    assert job.of("alloc") == everywhere(4 * MIB, 2, 2, 1, 1)
    assert job.of("alloc", 1) == everywhere(4 * MIB, 3)


def test_a_cache_of_hbm_is_no_node(cached: Guest) -> None:
    job = placed.run(
        cached, "traffic", "segment", "alloc", 4 * MIB, "bandwidth,forced", memory="all:bandwidth"
    )
    assert job.of("alloc") == everywhere(4 * MIB, 0)
    assert all(set(lying) == {0} for lying in job.of("segment").values())


def test_interleaved_pages_take_turns(per_socket: Guest) -> None:
    hints = {"2,3,interleave": (2, 3), "0,1,2,3,interleave": (0, 1, 2, 3)}
    actions = (word for hint in hints for word in ("alloc", 8 * MIB, hint))
    job = placed.run(per_socket, "traffic", "segment", *actions, memory="copy-buffers:2,3,interleave")
    for time, nodes in enumerate(hints.values()):
        for lying in job.of("alloc", time).values():
            assert set(lying) == set(nodes)
            assert all(abs(count - pages(8 * MIB) // len(nodes)) <= 1 for count in lying.values())
    of_buffers = job.of("segment")[0]
    assert of_buffers[2] > 0 and abs(of_buffers[2] - of_buffers[3]) <= 1
    agrees(job, "copy-buffers", (of_buffers[2] + of_buffers[3]) * PAGE)
    agrees(job, "alloc-mem", 16 * MIB)


def test_a_limit_is_kept(flat: Guest) -> None:
    job = placed.run(
        flat, "alloc", 8 * MIB, "bandwidth,max=2M", "heap", 96 * MIB, memory="heap:bandwidth,max=64M", ranks=2
    )
    for lying in job.of("alloc").values():
        assert lying == {1: pages(2 * MIB), 0: pages(6 * MIB)}
    for lying in job.of("heap").values():
        # The MPI's own allocations may have taken some of what is allowed.
        assert pages(32 * MIB) < lying[1] <= pages(64 * MIB)
        assert sum(lying.values()) == pages(96 * MIB) and "absent" not in lying
    assert job.counts["alloc-mem"] == Counts(8 * MIB, 2 * MIB, 6 * MIB, 0)


def test_what_does_not_fit_falls_back_to_the_next_best(tiers: Guest) -> None:
    job = placed.run(tiers, "alloc", 128 * MIB, "bandwidth", ranks=1)
    lying = job.of("alloc")[0]
    # The little HBM node first, as far as it has room, then the memory of the rank's own socket.
    assert set(lying) == {0, 2} and sum(lying.values()) == pages(128 * MIB)
    assert pages(24 * MIB) < lying[2] < pages(64 * MIB)
    assert job.counts["alloc-mem"] == Counts(128 * MIB, lying[2] * PAGE, lying[0] * PAGE, 0)


def test_ranks_that_fill_a_node_together_all_get_memory(tiers: Guest) -> None:
    job = placed.run(tiers, "alloc", 48 * MIB, "2")
    for lying in job.of("alloc").values():
        assert sum(lying.values()) == pages(48 * MIB) and "absent" not in lying
    on_hbm = sum(lying.get(2, 0) for lying in job.of("alloc").values())
    assert 0 < on_hbm < pages(64 * MIB)


def test_forced_placement_that_cannot_be_had_is_an_error(tiers: Guest) -> None:
    hints = ("2,forced", "bandwidth,forced", "7,forced")
    actions = (word for hint in hints for word in ("alloc", 128 * MIB, hint))
    job = placed.run(tiers, *actions, "alloc", MIB, "-", ranks=1)
    refused = [error for error in job.completed.stdout.splitlines() if " alloc error " in error]
    assert len(refused) == len(hints) and all("MPI_ERR_NO_MEM" in error for error in refused)
    for hint in hints:  # each is told, with its reason
        assert hint in job.completed.text, job.completed.text
    assert job.of("alloc") == {0: {0: pages(MIB)}}  # the program goes on


def test_forced_placement_of_nearfield_s_own_ends_the_job(tiers: Guest) -> None:
    job = placed.run(tiers, "traffic", memory="copy-buffers:7,forced", good=False)
    assert job.completed.returncode != 0
    assert re.search(r"\b7\b", job.completed.stderr) and "copy-buffers" in job.completed.stderr


def test_open_mpi_is_placed_as_well(flat: Guest) -> None:
    job = placed.run(
        flat, "traffic", "segment", "alloc", MIB, "bandwidth", host="openmpi", memory="all:bandwidth"
    )
    assert all(set(lying) == {1} for lying in job.of("segment").values())
    assert job.of("alloc") == everywhere(MIB, 1)


@pytest.mark.parametrize("how", ["window", "shared"])
def test_a_window_lies_where_its_hint_says(per_socket: Guest, how: str) -> None:
    job = placed.run(per_socket, how, 4 * MIB, "bandwidth", how, 4 * MIB, "-", memory="windows:3")
    # A page at either end of what the host allocates may be in use before, and stays where it is.
    spare = 1 if how == "shared" else 0
    for time, nodes in ((0, (2, 2, 3, 3)), (1, (3, 3, 3, 3))):
        for rank, node in enumerate(nodes):
            lies = job.of(how, time)[rank]
            assert lies[node] >= pages(4 * MIB) - spare and sum(lies.values()) == pages(4 * MIB)
    assert job.counts["windows"].elsewhere <= 2 * spare * PAGE
    assert job.counts["windows"].placed >= 8 * MIB - 2 * spare * PAGE
