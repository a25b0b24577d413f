"""Counts what a collective call sends between nodes, and compares it with the least that is possible.

A row has op, bytes, ranks, nodes, host, mode and algorithm, and the sums of one call over all nodes' interfaces: packets (with
acknowledgements), wire_bytes, segments (TCP segments with data; each small message is one) and payload (bytes without the
headers of Ethernet, IP and TCP).
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from nearfield.bench import failed
from nearfield.hosts import Host, find_hosts, launcher_environment
from nearfield.libraries import DEFAULT_HEAP, program
from nearfield.tables import print_columns
from tests.nodes.bed import Nodes
from tests.nodes.jobs import even_blocks, run_job

Row = dict[str, Any]
LIMIT = 60  # seconds for each size; plain hosts take seconds for a call where ranks outnumber CPUs
SHORT = 64  # bytes of a vector or block, up to which all for one node fit into a segment of TCP
COUNTED = ("barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall", "gather", "scatter")
COUNTED += ("reduce_scatter_block",)


def least(op: str, size: int, placement: Sequence[int]) -> tuple[float, int]:
    """Returns the least messages between nodes and the least bytes of a call whose vectors or blocks have `size` bytes.

    The number of messages holds for short data: one for each pair of nodes that exchange data; if partial results are as
    short as their operands, those of a tree or of recursive doubling. Rank 0 is the root.
    """
    members = Counter(placement)
    nodes, ranks = len(members), len(placement)
    pairs, rounds = nodes * (nodes - 1), math.ceil(math.log2(nodes))
    foreign = sum(here * (ranks - here) for here in members.values())
    beyond_root = ranks - members[placement[0]]
    return {
        "barrier": (nodes * rounds, 0),
        "bcast": (nodes - 1, (nodes - 1) * size),
        "reduce": (nodes - 1, (nodes - 1) * size),
        "allreduce": (nodes * rounds, 2 * (nodes - 1) * size),
        "allgather": (min(pairs, nodes * rounds), (nodes - 1) * ranks * size),
        "alltoall": (pairs, foreign * size),
        "gather": (nodes - 1, beyond_root * size),
        "scatter": (nodes - 1, beyond_root * size),
        "reduce_scatter_block": (pairs, (nodes - 1) * ranks * size),
    }[op]


def count(
    bed: Nodes,
    operations: Sequence[str],
    ranks: Sequence[int],
    sizes: Sequence[int],
    hosts: Sequence[str],
    algorithm: str = "",
    heap: str = DEFAULT_HEAP,
    seconds: float = 0.3,
) -> list[Row]:
    """A row of each operation that is COUNTED, number of ranks (in blocks), size, host and mode (plain, nearfield).

    `seconds`: Nearfield may try algorithms for so long before calls are counted; the counted calls take about as long.
    Raises ValueError when a job fails.
    """
    found = find_hosts()
    rows: list[Row] = []
    for op in operations:
        if op not in COUNTED:
            continue
        for n in ranks:
            for name in hosts:
                print(f"{op}, {n} ranks, {name}: what crosses", file=sys.stderr, flush=True)
                placement = even_blocks(n, len(bed.names))
                rows += count_in_job(bed, found[name], placement, [op], sizes, algorithm, heap, seconds)
    return rows


def count_in_job(
    bed: Nodes,
    host: Host,
    placement: Sequence[int],
    operations: Sequence[str],
    sizes: Sequence[int],
    algorithm: str,
    heap: str,
    seconds: float,
    mode: str = "",
) -> list[Row]:
    """The rows of one job, or those of a mode. Raises ValueError when it fails."""
    names = ",".join(operations)
    worker = [str(program(f"nearfield-bench-{host.abi}")), names, ",".join(map(str, sizes)), "warm"]
    worker += [str(seconds), algorithm, f"internode={mode}" if mode else "internode"]
    limit = LIMIT + len(operations) * len(sizes) * LIMIT
    ended = run_job(bed, host, placement, worker, launcher_environment(host, True, heap), limit)
    if ended.returncode or ended.timed_out:
        raise failed(names, len(placement), host, limit if ended.timed_out else 0, ended.text)
    lines = [json.loads(line) for line in ended.out[0].splitlines() if line.startswith("{")]
    return [{"host": host.name, "heap": heap} | line for line in lines]


def show(rows: Sequence[Row]) -> None:
    """Prints a line for each operation, size, number of ranks and host; packets and messages, and bytes without headers."""
    cells: dict[tuple, dict[str, Row]] = {}
    for row in rows:
        key = row["op"], row["bytes"], row["ranks"], row["nodes"], row["host"]
        cells.setdefault(key, {})[row["mode"]] = row
    titles = ["operation", "bytes", "ranks", "host", "packets", "Nearfield", "ratio"]
    for figure in ("messages", "payload"):
        titles += [figure, "Nearfield", "least", "ratio"]
    lines = []
    for (op, size, ranks, nodes, host), modes in cells.items():
        plain, ours = modes["plain"], modes["nearfield"]
        words = [op, str(size), str(ranks), host]
        words += [*_digits(plain["packets"], ours["packets"]), _ratio(ours["packets"], plain["packets"])]
        messages, data = least(op, size, even_blocks(ranks, nodes))
        of_short = messages if size <= SHORT else 0
        for key, bound in (("segments", of_short), ("payload", data)):
            words += [
                *_digits(plain[key], ours[key]),
                f"{bound:.0f}" if bound else "-",
                _ratio(ours[key], bound),
            ]
        lines.append([*words, ours["algorithm"]])
    if lines:
        print_columns([*titles, "algorithm"], lines, [None] * len(lines))


def _digits(*numbers: float) -> list[str]:
    return [f"{number:.1f}" if number < 100 else f"{number:.0f}" for number in numbers]


def _ratio(a: float, b: float) -> str:
    return f"{a / b:.2f}" if b else "-"
