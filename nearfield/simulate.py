"""`nearfield model alltoall --simulate`: every order of the all-to-all in the simulated caches of a machine.

Rows have simulated (true), ranks, bytes, state, shift, order, ns and use_ns (simulated nanoseconds of the call, and of
reading the result) and counts of one call of all ranks: accesses, l1_misses, l2_misses, near, far, sockets, memory, written,
invalidations and conflicts (tools/simulation/caches.hpp says what they count).
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from nearfield.libraries import program
from nearfield.model import machine_file
from nearfield.progress import tracked
from nearfield.tables import print_table

Row = dict[str, Any]
COUNTS = ("l2_misses", "near", "far", "sockets", "memory", "written", "invalidations", "conflicts")


def simulate(ranks: list[int], sizes: list[int], machine: str, state: str, shift: int) -> list[Row]:
    """All orders for all numbers of ranks and sizes; every rank has a core of its own.

    `state`: live (buffers are rewritten before and read after each call) or warm. `shift`: bytes by which a rank's buffers
    lie further into their huge page than those of the rank before. Raises ValueError for unknown machines and too few cores.
    """
    if state not in ("live", "warm"):
        raise ValueError(f"buffers are live or warm, not {state}")
    rows: list[Row] = []
    cells = [(p, size) for p in ranks for size in sizes]
    for p, size in tracked(cells, "simulating"):
        words = [str(program("nearfield-simulate")), str(p), str(size)]
        words += [*(machine_file(machine) or ["-"]), state, str(shift)]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            raise ValueError(done.stderr.strip())
        rows += [json.loads(line) | {"machine": machine} for line in done.stdout.splitlines()]
    return rows


def show(rows: list[Row]) -> None:
    """Prints the counts per line of data moved, and the simulated times in microseconds."""
    words = []
    for row in rows:
        lines = row["ranks"] ** 2 * max(row["bytes"], 1) / 64
        words.append([str(row["ranks"]), str(row["bytes"]), row["order"]])
        words[-1] += [f"{row[name] / lines:.3g}" for name in COUNTS]
        words[-1] += [f"{row['ns'] / 1000:.4g}", f"{row['use_ns'] / 1000:.4g}"]
    titles = ("ranks", "bytes", "order", *COUNTS, "us", "us of use")
    print_table(titles, words, title="Simulated; counts per cache line of data")


def plot(rows: list[Row], path: Path) -> None:
    """Writes an SVG: per number of ranks L2 misses, transfers between last-level caches and simulated time."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    counts = list(dict.fromkeys(row["ranks"] for row in rows))
    orders = list(dict.fromkeys(row["order"] for row in rows))
    figure, axes = plt.subplots(3, len(counts), figsize=(3.4 * len(counts) + 1.6, 7), squeeze=False)
    styles = {order: ("-", "--", ":")[index // 7] for index, order in enumerate(orders)}
    for column, p in enumerate(counts):
        for line, (what, title) in enumerate(
            [("l2_misses", "L2 misses"), ("far", "lines from other groups"), ("ns", "time and use, us")]
        ):
            axis = axes[line][column]
            for order in orders:
                cells = [row for row in rows if row["ranks"] == p and row["order"] == order]
                if not cells:
                    continue
                values = [
                    (row["ns"] + row["use_ns"]) / 1000
                    if what == "ns"
                    else row[what] / (p * p * max(row["bytes"], 1) / 64)
                    for row in cells
                ]
                axis.plot([row["bytes"] for row in cells], values, styles[order], linewidth=1, label=order)
            axis.set_xscale("log", base=2)
            axis.set_yscale(
                "log" if what == "ns" else "symlog", **({} if what == "ns" else {"linthresh": 0.1})
            )
            axis.set_title(f"{title}{'' if what == 'ns' else ' per line moved'}, {p} ranks", fontsize=8)
            axis.tick_params(labelsize=6)
    axes[0][-1].legend(fontsize=5, loc="upper left", bbox_to_anchor=(1.02, 1))
    first = rows[0]
    figure.suptitle(f"Simulated: alltoall on {first['machine']}, {first['state']} buffers", fontsize=9)
    figure.tight_layout()
    figure.savefig(path, format="svg")
    plt.close(figure)
