"""States of the machine that blocks of calls were measured in, and the rows that come of blocks.

With each block of calls the time of a cache line is measured. When a run has ended, all these times are clustered into
states, as ranks do it (engine/machine/states.hpp). A block belongs to the state of its own cache line, whatever job it is
from. A machine whose times differ little has one state.
"""

from __future__ import annotations

import bisect
import json
import statistics
import subprocess
from collections.abc import Iterable, Sequence
from typing import Any

from nearfield.libraries import program

Row = dict[str, Any]
NOT_TIMED = "any"  # lines were not timed: ranks share CPUs, or cannot map each other's memory


class States:
    """Names of a machine's states, out of all times of a cache line in a run. A time of 0 ns was not measured."""

    def __init__(self, lines: Iterable[float]) -> None:
        text = " ".join(f"{line:.1f}" for line in lines if line > 0)
        done = subprocess.run(
            [str(program("nearfield-model")), "states"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        self.found = [json.loads(line) for line in done.stdout.splitlines()]
        self._borders = [state["border"] for state in self.found[:-1]]
        self._names = [_name(state["low"], state["high"]) for state in self.found]

    def name(self, line: float) -> str:
        """The name of the state in which a cache line takes `line` ns."""
        return self._names[bisect.bisect_right(self._borders, line)] if line > 0 else NOT_TIMED


def _name(low: float, high: float) -> str:
    """50 ns; 97-138 ns."""
    words = dict.fromkeys(f"{round(line)}" for line in (low, high))
    return f"{'-'.join(words)} ns"


def rows_of_blocks(measured: Sequence[Row]) -> list[Row]:
    """Returns a row for each state in which a cell was measured, in the order of the cells. It has no `calls` (of a block) and `blocks`
    (pairs: ns of a cache line, microseconds of a call), but state, line_ns, median, mean, lower and upper (quartiles) and iterations."""
    states = States(line for row in measured for line, _ in row["blocks"])
    rows = []
    for row in measured:
        about = {key: value for key, value in row.items() if key not in ("calls", "blocks")}
        of_state: dict[str, list[tuple[float, float]]] = {}
        for line, time in row["blocks"]:
            of_state.setdefault(states.name(line), []).append((line, time))
        for state, blocks in sorted(of_state.items(), key=lambda item: min(item[1])):
            times = sorted(time for _, time in blocks)
            quartiles = {
                key: times[round(q * (len(times) - 1))] for key, q in (("lower", 0.25), ("upper", 0.75))
            }
            figures = {"line_ns": round(statistics.median(line for line, _ in blocks))}
            figures |= {"median": statistics.median(times), "mean": statistics.fmean(times)} | quartiles
            rows.append(about | {"state": state} | figures | {"iterations": row["calls"] * len(times)})
    return rows


def joined(jobs: Sequence[Sequence[Row]]) -> list[Row]:
    """Joins the blocks of equal cells of several jobs."""
    cells: dict[tuple, Row] = {}
    for row in (row for job in jobs for row in job):
        key = tuple(row[k] for k in ("bytes", "buffers", "loop", "mode"))
        if key in cells:
            cells[key]["blocks"] = cells[key]["blocks"] + row["blocks"]
        else:
            cells[key] = dict(row)
    return list(cells.values())
