"""Reads the statistics that ranks write because of NEARFIELD_STATS_FILE: the rows of mpi/statistics.def, with types."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VARIABLE = "NEARFIELD_STATS_FILE"
PATTERN = "%h.%p.%r.json"  # a file for each process, of several jobs or each in a container of its own too


@dataclass(frozen=True)
class Operation:
    """Calls of one collective operation in all its forms."""

    calls: int
    bytes: int
    seconds: float
    to_the_host: int
    why: dict[str, int]  # calls that the host served, by reason

    @property
    def carried(self) -> int:
        """Calls that Nearfield carried itself."""
        return self.calls - self.to_the_host


@dataclass(frozen=True)
class Function:
    """Calls of one function that the host always serves."""

    calls: int
    seconds: float


@dataclass(frozen=True)
class Component:
    """Bytes of one component of memory: those in use, and of those that a placement was asked for, where they lie."""

    in_use: int
    in_use_at_most: int
    asked: int
    placed: int
    elsewhere: int
    unknown: int
    wish: str


@dataclass(frozen=True)
class Decision:
    """What trials have decided for calls of one operation, length and number of ranks. Only a communicator's first rank has it."""

    operation: str
    bytes: int
    ranks: int
    algorithm: str
    tried: dict[str, float | None]  # seconds of a call, by algorithm; None: it was out of reach
    calls: int  # that the trials took
    seconds_beyond_best: float  # that these took more than by the algorithm


@dataclass(frozen=True)
class Statistics:
    """The statistics of one rank, without operations, functions and components of which nothing was counted."""

    host: str
    process: int
    rank: int
    size: int
    operations: dict[str, Operation]
    functions: dict[str, Function]
    memory: dict[str, Component]
    counts: dict[str, int | float]  # of the process: all its rows, those of time in seconds
    decisions: list[Decision] = field(default_factory=list)

    def carried(self, operation: str) -> int:
        """Calls of a collective operation that Nearfield carried itself."""
        return self.operations[operation].carried if operation in self.operations else 0

    @property
    def sent(self) -> int:
        """Messages, and notes about them, that Nearfield sent."""
        return self.counts["messages_by_fastboxes"] + self.counts["messages_by_the_queue"]


def _typed(written: dict[str, Any]) -> Statistics:
    return Statistics(
        *(written[name] for name in ("host", "process", "rank", "size")),
        operations={name: Operation(**{"why": {}} | one) for name, one in written["operations"].items()},
        functions={name: Function(**one) for name, one in written["functions"].items()},
        memory={name: Component(**{"wish": ""} | one) for name, one in written["memory"].items()},
        counts=written["counts"],
        decisions=[Decision(**one) for one in written["decisions"]],
    )


def read_statistics(*places: Path) -> list[Statistics]:
    """Reads files, and all *.json in directories; sorts them by rank. A rank that died before MPI_Finalize has no file.

    Raises ValueError if a file cannot be read, or if there is none.
    """
    files: list[Path] = []
    for place in places:
        files += sorted(place.glob("*.json")) if place.is_dir() else [place]
    found = [_read(file) for file in files]
    if not found:
        raise ValueError(
            f"there are no statistics in {', '.join(map(str, places))}: run the job with {VARIABLE}={PATTERN}"
        )
    return sorted(found, key=lambda one: one.rank)


def parse_statistics(text: str, called: str = "it") -> Statistics:
    """Reads the text of one rank's file, which errors name as `called`. Raises ValueError."""
    try:
        return _typed(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{called} is not a file that {VARIABLE} has written") from None


def _read(file: Path) -> Statistics:
    try:
        text = file.read_text(errors="surrogateescape")
    except OSError as error:
        raise ValueError(f"cannot read {file}: {error.strerror}") from None
    return parse_statistics(text, str(file))


def missing(found: Iterable[Statistics]) -> list[int]:
    """The ranks of the job without statistics: they died, or ended without MPI_Finalize, or ran without Nearfield."""
    ranks = list(found)
    there = {one.rank for one in ranks}
    return [rank for rank in range(max((one.size for one in ranks), default=0)) if rank not in there]
