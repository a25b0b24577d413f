"""The results of the demo, and the figures and words that its tables and its page show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench.apps import APPS, BOTH, HEAP, MPI, PLAIN, best_plain, by_cell
from nearfield.summary import cells_of, geometric_mean

Row = dict[str, Any]
# Those that it times by size, in the order of its tables.
OPERATIONS = ("latency", "bcast", "allreduce", "allgather", "alltoall", "reduce_scatter_block")


@dataclass(frozen=True)
class Program:
    """An application as the demo runs it; points and loops as in bench/apps.py."""

    app: str
    title: str
    points: int
    loops: int
    form: str = ""


@dataclass(frozen=True)
class Carried:
    """How a program's calls were served: numbers of collectives and messages, the protocols of messages, the calls that the host served,
    and the full statistics."""

    collectives: int
    messages: int
    ways: str
    to_host: int
    text: str


def pairs_of(rows: list[Row], programs: tuple[Program, ...]) -> list[tuple[Program, Row, Row]]:
    """Each program's cells, plain and under Nearfield."""
    by_name = {program.app: program for program in programs}
    cells = [cell for cell in by_cell(rows) if BOTH in cell]
    return [(by_name[cell[BOTH]["app"]], cell[PLAIN], cell[BOTH]) for cell in cells]


PARTS = ["heap alone", "MPI alone", "by the best host"]


def part_ratios(rows: list[Row], ours: Row) -> list[float | None]:
    """Ratios of wall times: with the heap alone and with MPI alone to the plain host's; Nearfield's to that of the quickest
    plain host, if there are several. None: not run."""
    cell = next(cell for cell in by_cell(rows) if cell.get(BOTH) is ours)
    alone = [cell[mode]["seconds"] / cell[PLAIN]["seconds"] if mode in cell else None for mode in (HEAP, MPI)]
    several = len({row["host"] for row in rows}) > 1
    return [*alone, ours["seconds"] / best_plain(rows, ours) if several else None]


def ratio_words(ratios: list[float | None]) -> list[str]:
    return ["-" if ratio is None else f"{ratio:.2f}" for ratio in ratios]


def ratios_of(rows: list[Row], ranks: int) -> dict[str, dict[int, float]]:
    """Nearfield's time by the host's of each operation by size; where the machine was in two states, their geometric mean."""
    found: dict[str, dict[int, list[float]]] = {}
    for operation, state in {(row["op"], row["state"]) for row in rows}:
        of_state = [
            row for row in rows if (row["op"], row["state"], row["ranks"]) == (operation, state, ranks)
        ]
        for cell in cells_of(of_state):
            if cell["ratio"]:
                found.setdefault(operation, {}).setdefault(cell["bytes"], []).append(cell["ratio"])
    return {
        operation: {size: geometric_mean(ratios) for size, ratios in sorted(sizes.items())}
        for operation, sizes in ((name, found[name]) for name in OPERATIONS if name in found)
    }


def safe_words(programs: tuple[Program, ...]) -> str:
    """Which results were compared how; `compare` has raised where they differ."""
    exact = [program.title for program in programs if not APPS[program.app].rounding]
    rounded = [program.title for program in programs if APPS[program.app].rounding]
    words = [f"to the last bit: {', '.join(exact)}"] * bool(exact)
    words += [f"to rounding, as MPI promises: {', '.join(rounded)}"] * bool(rounded)
    return "; ".join(words)
