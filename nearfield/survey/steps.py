"""What a survey measures: its steps in the order of importance, so that one that ends early has what matters most.

A step that is done is a file (nearfield/survey/running.py), by the step's name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from nearfield.choices import BEGINNING
from nearfield.operations import PROTOCOLS, sizes_of
from nearfield.survey.places import Placement

# Without scans and variants of one another.
COLLECTIVES = (
    "allreduce",
    "bcast",
    "alltoall",
    "barrier",
    "reduce",
    "allgather",
    "gather",
    "scatter",
    "reduce_scatter_block",
)
# As many as there is time for.
SIZES = (
    (8, 4 << 10, 256 << 10),
    (8, 512, 16 << 10, 256 << 10, 2 << 20),
    (8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20),
)
SECONDS_OF_A_CELL = 1.0  # wanted
# A message by each protocol is one of the ways in which bytes change processes.
COPIED = (8, 1 << 10, 16 << 10, 256 << 10, 2 << 20)
SHARE_OF_LINES = 0.05  # of the time
SECONDS_OF_A_LINE = 0.015  # a pair, processes included
# Blocks of each rank for each, on both sides, the host's and ours, may take so much of the memory that is free.
OF_MEMORY = 0.25
WITH_BLOCKS = ("alltoall", "allgather", "gather", "scatter", "reduce_scatter_block")


@dataclass(frozen=True)
class Step:
    """`kind` is one of KINDS; `weight` is its share of the time, by that of one job of a collective."""

    kind: str
    weight: float = 1
    placement: Placement | None = None
    op: str = ""
    host: str = ""
    sizes: tuple[int, ...] = ()
    protocol: str = ""

    @property
    def name(self) -> str:
        """A word for its file, and what is shown while it runs."""
        where = self.placement.name if self.placement else ""
        return ", ".join(filter(None, (self.kind, where, self.op, self.host, self.protocol)))


KINDS = ("machine", "lines", "calibration", "copies", "by algorithm", "by host")


def steps_for(
    minutes: float,
    placements: Sequence[Placement],
    hosts: Sequence[str],
    ops: Sequence[str] = COLLECTIVES,
    free: float = math.inf,
) -> list[Step]:
    """All steps; `hosts` the first of which measures algorithms too, `free` bytes of memory. Without hosts there are no jobs."""
    steps = [Step("machine", 0.1), Step("lines", 0.5), Step("calibration", 0.3)]
    jobs = len(hosts) * len(placements) * len(ops) * (1 + 1 / max(1, len(hosts)))
    chosen = _sizes(60 * minutes / max(1, jobs))
    of_collectives: list[Step] = []
    for index, host in enumerate(hosts):
        for placement in placements:
            for op in ops:
                lengths = tuple(
                    size for size in sizes_of(op, list(chosen)) if fits(op, size, placement, free)
                )
                if lengths and index == 0 and op != "barrier":
                    of_collectives.append(Step("by algorithm", 1, placement, op, host, lengths))
                if lengths:
                    of_collectives.append(Step("by host", 1, placement, op, host, lengths))
    two = [placement for placement in placements if placement.ranks == 2]
    copies = [
        Step("copies", 0.5, placement, "latency", hosts[0], COPIED, protocol)
        for placement in two
        for protocol in PROTOCOLS
        if hosts and protocol != "auto"
    ]
    return steps + copies + of_collectives


def _sizes(seconds: float) -> tuple[int, ...]:
    """Those for which so many seconds of a job suffice, or the fewest."""
    enough = [sizes for sizes in SIZES if BEGINNING + len(sizes) * SECONDS_OF_A_CELL <= seconds]
    return enough[-1] if enough else SIZES[0]


def fits(op: str, size: int, placement: Placement, free: float) -> bool:
    """Whether the buffers of a job do."""
    blocks = placement.ranks if op in WITH_BLOCKS else 1
    return 4 * placement.ranks * blocks * size <= OF_MEMORY * free
