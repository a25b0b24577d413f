"""How many packets and bytes collectives send between nodes, beside the least that is possible: counted, hence no noise.

What takes how long is for bench/nodes.py, which prints these counters as well.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.internode_traffic import COUNTED, SHORT, Row, count_in_job, least
from tests.mpi.jobs import HOSTS, ROOT
from tests.nodes.bed import Nodes
from tests.nodes.beds import MAIN, OPERATIONS, SAME_BITS, forced, made_or_skip, rows
from tests.nodes.jobs import blocks, round_robin
from tests.selection import FULL, per_change

PLACEMENTS = {"2+2-in-turn": round_robin(2, 2), "2+2": blocks(2, 2)}
LAYOUT = pytest.mark.parametrize("layout", per_change(PLACEMENTS))


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with made_or_skip(Nodes(2, own_cpus=True)) as two:
        yield two


def count(
    nodes: Nodes, host: str, placement: list[int], ops: list[str], sizes: list[int], names: str, mode: str
) -> list[Row]:
    """What calls of one mode send, by the rows of these names where they are forced."""
    algorithm = forced(*names.split(","))
    return count_in_job(nodes, HOSTS[host], placement, ops, sizes, algorithm, "shared", 0.05, mode)


def test_the_least_is_what_it_should_be() -> None:
    assert least("bcast", 100, blocks(2, 3)) == (1, 100)
    assert least("allreduce", 100, blocks(4, 4)) == (2, 200)
    assert least("allreduce", 100, blocks(1, 1, 1, 1)) == (8, 600)
    assert least("allgather", 8, blocks(3, 1)) == (2, 32)
    assert least("alltoall", 8, blocks(3, 1)) == (2, 2 * 3 * 8)
    assert least("alltoall", 8, round_robin(2, 2)) == (2, 8 * 8)
    assert least("gather", 8, [1, 0, 0, 0]) == (1, 24)
    assert set(COUNTED) == set(OPERATIONS)


@FULL
@pytest.mark.parametrize("host", MAIN)
def test_no_host_sends_less_than_the_least(nodes: Nodes, host: str) -> None:
    found = count(nodes, host, blocks(2, 2), OPERATIONS, [8, 1 << 16], "", "plain")
    assert len(found) == 2 * len(OPERATIONS) - 1  # a barrier has one size
    for row in found:
        messages, data = least(row["op"], row["bytes"], blocks(2, 2))
        assert row["segments"] > 0.99 * messages and row["payload"] > 0.98 * data, row


@LAYOUT
@pytest.mark.parametrize("name", SAME_BITS)
@pytest.mark.parametrize("host", per_change(MAIN))
def test_data_cross_once(nodes: Nodes, host: str, name: str, layout: str) -> None:
    """Long data, by each of our rows."""
    ops = [op for op in OPERATIONS if op != "barrier" and name in rows()[op]]
    placement = PLACEMENTS[layout]
    for row in count(nodes, host, placement, ops, [1 << 18], name, "nearfield"):
        assert row["algorithm"] == name, row
        assert row["payload"] < 1.1 * least(row["op"], row["bytes"], placement)[1], row


@LAYOUT
@pytest.mark.parametrize("host", MAIN)
def test_short_data_cross_in_one_message_per_pair_of_nodes(nodes: Nodes, host: str, layout: str) -> None:
    placement = PLACEMENTS[layout]
    for row in count(nodes, host, placement, list(OPERATIONS), [8, SHORT], "leader", "nearfield"):
        assert row["algorithm"] == "leader", row
        assert row["segments"] < 1.1 * least(row["op"], row["bytes"], placement)[0], row


@FULL
@pytest.mark.parametrize("host", MAIN)
def test_short_blocks_need_few_packets(nodes: Nodes, host: str) -> None:
    """A quarter of the plain host's, or, where that sends hardly more than it must, a message and its acknowledgement."""
    ops, sizes, placement = ["alltoall", "allgather"], [8, 1024], blocks(4, 4)
    plain = count(nodes, host, placement, ops, sizes, "", "plain")
    ours = count(nodes, host, placement, ops, sizes, "leader", "nearfield")
    for theirs, row in zip(plain, ours, strict=True):
        assert (theirs["op"], theirs["bytes"]) == (row["op"], row["bytes"])
        messages = least(row["op"], row["bytes"], placement)[0]
        assert row["packets"] <= max(theirs["packets"] / 4, 2.2 * messages), (theirs, row)


@FULL
def test_the_command_compares_over_nodes(tmp_path: Path) -> None:
    with made_or_skip(Nodes(1)):
        pass
    file = tmp_path / "rows.json"
    command = [sys.executable, "-c", "from nearfield.cli import main; main()", "bench", "--nodes", "2"]
    command += ["--ranks", "2", "--op", "bcast", "--sizes", "8", "--seconds", "0.01", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    timed, crossed = (
        [row for row in json.loads(file.read_text()) if key in row] for key in ("median", "packets")
    )
    assert {row["mode"] for row in timed} == {row["mode"] for row in crossed} == {"plain", "nearfield"}
    assert {row["nodes"] for row in timed + crossed} == {2}
    assert "bcast, 2 ranks, used buffers, 2 nodes" in done.stdout
