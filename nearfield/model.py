"""`nearfield model`: what every algorithm is estimated to cost, and which one would be chosen.

The estimates are those that ranks choose by (engine/collectives, one function per algorithm), for the figures of this
machine or of one described in a file.
"""

from __future__ import annotations

import json
import math
import os
import re
import socket
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nearfield.job import measure_network, present_job
from nearfield.libraries import cache_directory, program
from nearfield.operations import NONBLOCKING, OWN_LOOP
from nearfield.tables import print_table

PRESETS = Path(__file__).parent / "machines"
Cell = dict[str, Any]
OVER_NODES = ("leader", "lanes", "pipelined")


def stored(ending: str = ".toml") -> Path:
    """The path of the file in which this machine's figures are stored, or of another file of that ending beside it."""
    return cache_directory() / f"{socket.gethostname()}{ending}"


def calibrate() -> Path | None:
    """Measures figures in about a second and stores them: those of this machine, or, if this is a rank of a job over several
    nodes, those of the network. Returns the file; None if another rank of this node stores it."""
    job = present_job()
    if job is None:
        return _stored_by("calibrate")
    figures = measure_network(job)
    if figures is None:
        return None
    return _stored_by(
        "set", *[f"{name}={value}" for name, value in figures.items() if name.startswith("net_")]
    )


def _stored_by(*words: str) -> Path:
    done = subprocess.run([str(program("nearfield-model")), *words], capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"the calibration failed: {done.stderr.strip()}")
    return Path(done.stdout.strip())


def machine_file(machine: str) -> list[str]:
    """The arguments by which nearfield-model gets a machine: none for this one, else the file of a preset or the user. Raises ValueError."""
    if machine == "here":
        return []
    presets = {path.stem: path for path in sorted(PRESETS.glob("*.toml"))}
    path = presets.get(machine, Path(machine))
    if not path.exists():
        raise ValueError(
            f"there is no machine {machine}; write here, {', '.join(presets)}, or the name of a file"
        )
    return [str(path)]


def figures_of(machine: str) -> dict[str, float]:
    """The numbers before the first section of a machine's file; none for this machine. Raises ValueError."""
    described = machine_file(machine)
    lines = (
        re.split(r"^\s*\[", Path(described[0]).read_text(), maxsplit=1, flags=re.MULTILINE)
        if described
        else [""]
    )
    return {
        name: float(value)
        for name, value in re.findall(r"^\s*(\w+)\s*=\s*([-+.\de]+)", lines[0], re.MULTILINE)
    }


def predict(
    operation: str, ranks: list[int], sizes: list[int], machine: str = "here", nodes: Sequence[int] = ()
) -> list[Cell]:
    """Returns cells. On one node they have op, ranks, bytes, chosen, staged (chosen if peers cannot reach the buffers), promising
    (the algorithms that ranks try at run time), ns (by algorithm) and behind (by algorithm: ns that the program loses later, when it
    writes again to buffers that peers have read).

    With `nodes`, of `ranks` ranks each, they have op, nodes, ranks_per_node, ranks, bytes, chosen, ns (by algorithm), chunks (of the
    algorithm `pipelined`) and network (the figures used)."""
    shapes = [f"{count}x{each}" for count in nodes for each in ranks] if nodes else map(str, ranks)
    return ask("predict", operation, ",".join(shapes), ",".join(map(str, sizes)), machine)


def ranks_of_a_node(ranks: int, machine: str) -> int:
    """Returns `ranks`, or if that is 0 the number of the machine's CPUs."""
    if ranks > 0:
        return ranks
    return int(figures_of(machine).get("cpus", 0)) or len(os.sched_getaffinity(0))


def constants() -> list[Cell]:
    """The constants of estimates and of the choice, which are no figures of a machine: name, unit, value, about, measured."""
    return _answers("constants")


def ask(command: str, operation: str, ranks: str, sizes: str, machine: str) -> list[Cell]:
    """The output of nearfield-model, a dictionary for each line. Raises ValueError if it reports an error."""
    return _answers(command, operation, ranks, sizes, *machine_file(machine))


def lines_between(pairs: Sequence[tuple[int, int]]) -> list[Cell]:
    """Returns a cell for each pair of CPUs; this process may use them. Keys: first, second, ns (a cache line one way; 0: not measured)."""
    return _answers("lines", *(f"{first}-{second}" for first, second in pairs))


def _answers(*words: str) -> list[Cell]:
    done = subprocess.run([str(program("nearfield-model")), *words], capture_output=True, text=True)
    if done.returncode:
        raise ValueError(done.stderr.strip())
    return [json.loads(line) for line in done.stdout.splitlines()]


def add_predictions(rows: list[Cell]) -> float | None:
    """Adds "predicted" (microseconds) to Nearfield's rows of the loop `own`. Returns the median relative error; None if there is no such row.

    The error of a cell is |predicted / measured - 1|, or the inverse ratio's where the estimate is too low.
    """
    errors = []
    for row in rows:
        foreign = row["algorithm"] in ("host", "messages", "window") or row.get("nodes", 1) > 1
        foreign |= row["op"] in NONBLOCKING or row.get("loop", OWN_LOOP) != OWN_LOOP
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


def show_constants(rows: list[Cell]) -> None:
    """Prints the table of constants."""
    print_table(
        ("constant", "value", "unit", "what it is", "measured"),
        [[row["name"], f"{row['value']:g}", row["unit"], row["about"], row["measured"]] for row in rows],
    )


def show_nodes(cells: list[Cell]) -> None:
    """Prints the predictions for every cell over nodes, and the network's figures that they use."""
    print(f"predicted, not measured; {describe_network(cells[0]['network'])}")
    rows = []
    for cell in cells:
        us = {name: f"{ns / 1000:.3g}" for name, ns in cell["ns"].items()}
        shape = [cell["op"], str(cell["nodes"]), str(cell["ranks_per_node"]), str(cell["bytes"])]
        rows.append([*shape, cell["chosen"], *(us.get(name, "-") for name in (cell["chosen"], *OVER_NODES))])
    titles = ("op", "nodes", "ranks per node", "bytes", "best", "predicted us")
    print_table((*titles, *OVER_NODES), rows)


def describe_network(figures: dict[str, float]) -> str:
    """The figures of a network in a line."""

    def rate(ns: float, unit: float) -> str:
        return f"{unit / ns:.3g}" if ns else "unlimited"

    return (
        f"network: {figures['latency'] / 1000:.3g} us,"
        f" {rate(figures['byte'], 1)} GB/s and {rate(figures['message'], 1000)} M messages/s a rank,"
        f" {rate(figures['node_byte'], 1)} GB/s and {rate(figures['node_message'], 1000)} M messages/s a node"
    )


def plot(cells: list[Cell], path: Path) -> None:
    """Writes an SVG: estimated time against size, one panel per operation and number of ranks or nodes."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    panels = list(dict.fromkeys(map(_panel, cells)))
    columns = min(4, len(panels))
    lines = -(-len(panels) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(3.6 * columns, 2.8 * lines), squeeze=False)
    for axis in axes.flat:
        axis.set_visible(False)
    for index, panel in enumerate(panels):
        axis = axes.flat[index]
        axis.set_visible(True)
        chosen = [cell for cell in cells if _panel(cell) == panel and cell["ns"]]
        for name in dict.fromkeys(name for cell in chosen for name in cell["ns"]):
            points = [(c["bytes"], c["ns"][name] / 1000) for c in chosen if name in c["ns"]]
            axis.plot(*zip(*points), linewidth=1, label=name)
        best = [(c["bytes"], c["ns"][c["chosen"]] / 1000) for c in chosen]
        axis.plot(*zip(*best), ".", color="black", markersize=3, label="chosen")
        axis.set_xlabel("bytes", fontsize=7)
        axis.set_ylabel("predicted us", fontsize=7)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_title(panel, fontsize=9)
        axis.tick_params(labelsize=7)
        axis.legend(fontsize=5)
    figure.tight_layout()
    figure.savefig(path, format="svg")
    plt.close(figure)


def _panel(cell: Cell) -> str:
    where = f"{cell['nodes']} x {cell['ranks_per_node']}" if "nodes" in cell else str(cell["ranks"])
    return f"{cell['op']}, {where} ranks (model)"
