"""`nearfield model`: what every algorithm is estimated to cost, and which one would be chosen.

The estimates are those that ranks choose by (engine/collectives, one function per algorithm), for the figures of this
machine or of one described in a file.
"""

from __future__ import annotations

import json
import math
import os
import socket
import statistics
import subprocess
from pathlib import Path
from typing import Any

from nearfield.libraries import program
from nearfield.tables import print_table

PRESETS = Path(__file__).parent / "machines"
Cell = dict[str, Any]


def stored(ending: str = ".toml") -> Path:
    """Where what is known of this machine is kept between runs: its figures, or another file of that ending."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "nearfield" / f"{socket.gethostname()}{ending}"


def calibrate() -> Path:
    """Measures this machine's figures, in about a second, and stores them. Returns the file."""
    text = subprocess.run([str(program("nearfield-model")), "calibrate"], capture_output=True, text=True)
    if text.returncode:
        raise ValueError(f"the calibration failed: {text.stderr.strip()}")
    return Path(text.stdout.strip())


def machine_file(machine: str) -> list[str]:
    """Arguments for a machine: none for this one, else a preset's or a user's file. Raises ValueError."""
    if machine == "here":
        return []
    presets = {path.stem: path for path in sorted(PRESETS.glob("*.toml"))}
    path = presets.get(machine, Path(machine))
    if not path.exists():
        raise ValueError(f"there is no machine {machine}; there are here, {', '.join(presets)}, or a file")
    return [str(path)]


def predict(operation: str, ranks: list[int], sizes: list[int], machine: str = "here") -> list[Cell]:
    """Cells with op, ranks, bytes, chosen, staged (chosen when buffers are out of reach), promising (what ranks try at
    run time), ns per algorithm, and behind: ns per algorithm that the program pays later, when it writes again to
    buffers that peers have read."""
    return ask("predict", operation, ",".join(map(str, ranks)), ",".join(map(str, sizes)), machine)


def ask(command: str, operation: str, ranks: str, sizes: str, machine: str) -> list[Cell]:
    """What nearfield-model answers, a dictionary per line. Raises ValueError for what it does not know."""
    words = [str(program("nearfield-model")), command, operation, ranks, sizes, *machine_file(machine)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(done.stderr.strip())
    return [json.loads(line) for line in done.stdout.splitlines()]


def add_predictions(rows: list[Cell]) -> float | None:
    """Adds "predicted" (microseconds) to Nearfield's rows of a benchmark; the median relative error, None without any.

    The error of a cell is |predicted / measured - 1|, or the inverse ratio's where the estimate is too low.
    """
    errors = []
    for row in rows:
        foreign = row["algorithm"] in ("host", "messages") or row.get("nodes", 1) > 1
        if row["mode"] != "nearfield" or foreign:
            continue
        cell = predict(row["op"], [row["ranks"]], [row["bytes"]])[0]
        if row["algorithm"] in cell["ns"]:
            row["predicted"] = cell["ns"][row["algorithm"]] / 1000
            errors.append(math.exp(abs(math.log(max(row["predicted"], 1e-6) / row["median"]))) - 1)
    return statistics.median(errors) if errors else None


def show(cells: list[Cell]) -> None:
    """Prints the choice and its estimate for every cell."""
    rows = []
    for cell in cells:
        costs = {name: ns / 1000 for name, ns in sorted(cell["ns"].items(), key=lambda item: item[1])}
        chosen, staged = cell["chosen"], cell["staged"]
        later = {name: f"+{ns / 1000:.3g}" for name, ns in cell["behind"].items()}
        us = {name: f"{cost:.3g}{later.get(name, '')}" for name, cost in costs.items()}
        others = ", ".join(f"{name} {us[name]}" for name in us if name not in (chosen, staged))
        rows.append([cell["op"], str(cell["ranks"]), str(cell["bytes"]), chosen, us[chosen]])
        rows[-1] += [staged, us[staged], others]
    print_table(("op", "ranks", "bytes", "chosen", "us", "out of reach", "us", "others"), rows)


def plot(cells: list[Cell], path: Path) -> None:
    """Writes an SVG: estimated time against size, one panel per operation and number of ranks."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    panels = list(dict.fromkeys((cell["op"], cell["ranks"]) for cell in cells))
    columns = min(4, len(panels))
    lines = -(-len(panels) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(3.6 * columns, 2.8 * lines), squeeze=False)
    for axis in axes.flat:
        axis.set_visible(False)
    for index, panel in enumerate(panels):
        axis = axes.flat[index]
        axis.set_visible(True)
        chosen = [cell for cell in cells if (cell["op"], cell["ranks"]) == panel]
        for name in dict.fromkeys(name for cell in chosen for name in cell["ns"]):
            points = [(c["bytes"], c["ns"][name] / 1000) for c in chosen if name in c["ns"]]
            axis.plot(*zip(*points, strict=True), linewidth=1, label=name)
        best = [(c["bytes"], c["ns"][c["chosen"]] / 1000) for c in chosen]
        axis.plot(*zip(*best, strict=True), ".", color="black", markersize=3, label="chosen")
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_title(f"{panel[0]}, {panel[1]} ranks (model)", fontsize=9)
        axis.tick_params(labelsize=7)
        axis.legend(fontsize=5)
    figure.tight_layout()
    figure.savefig(path, format="svg")
    plt.close(figure)
