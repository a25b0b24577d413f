"""The results of a comparison: the runs of each mode and their figures."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from pathlib import Path

from nearfield.sameness import Sameness

PLAIN, HEAP, MESSAGES, BOTH = MODES = ("plain", "heap alone", "MPI alone", "both")


@dataclass(frozen=True)
class Run:
    """One run. `status` is as a shell has it."""

    wall: float
    cpu: float
    status: int
    late: bool  # it was stopped
    output: Path  # runs that printed the same share a file
    errors: str

    def good(self, status: int) -> bool:
        """Whether it ended by itself, with that status."""
        return self.status == status and not self.late


@dataclass
class Compared:
    """The result of a comparison. `runs` has the runs of each mode, in the order of rounds; the first plain run is good."""

    command: list[str]
    status: int
    runs: dict[str, list[Run]]
    in_mpi: dict[str, float | None] = field(default_factory=dict)  # share of wall time, of PLAIN and BOTH
    unserved: list[str] = field(default_factory=list)  # why nothing was served
    outputs: dict[str, Sameness] = field(default_factory=dict)  # by mode, the worst of its good runs
    prints: bool = True

    def failed(self, mode: str) -> list[Run]:
        """Runs of a mode that did not end as the command does."""
        return [run for run in self.runs[mode] if not run.good(self.status)]

    def figures(self, mode: str, figure: str) -> list[float]:
        """The values of a figure, `wall` or `cpu`, in a mode's good runs."""
        return [getattr(run, figure) for run in self.runs[mode] if run.good(self.status)]

    def ratios(self, mode: str, figure: str = "wall", to: str = PLAIN) -> list[float]:
        """Ratios to the run of the mode `to` in the same round, if both runs are good."""
        pairs = zip(self.runs[mode], self.runs[to])
        return [
            getattr(one, figure) / max(getattr(other, figure), 1e-6)
            for one, other in pairs
            if one.good(self.status) and other.good(self.status)
        ]

    @property
    def same(self) -> bool:
        """Whether all runs ended and printed as plain ones do."""
        return all(one.same for one in self.outputs.values()) and not any(map(self.failed, MODES))


def quartiles(values: list[float]) -> tuple[float, float, float]:
    """Lower quartile, median, upper quartile; pre: there is a value."""
    if len(values) == 1:
        return values[0], values[0], values[0]
    lower, middle, upper = statistics.quantiles(values, n=4, method="inclusive")
    return lower, middle, upper


def differ(ratios: list[float]) -> bool:
    """Whether so many ratios lie on one side of 1 that chance would do so in one of 16 cases at most: all of five to eight, all but
    one of nine to eleven (the sign test on pairs of runs). Those that are 1 do not count."""
    less, more = sum(ratio < 1 for ratio in ratios), sum(ratio > 1 for ratio in ratios)
    count, fewer = less + more, min(less, more)
    return 2 * sum(math.comb(count, k) for k in range(fewer + 1)) * 16 <= 2**count
