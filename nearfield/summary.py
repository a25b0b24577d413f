"""Prints the results of `nearfield bench`: times by size, all hosts beside each other, and ratios to the best of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import Any

from nearfield.operations import OWN_LOOP
from nearfield.states import NOT_TIMED
from nearfield.tables import print_columns

Row = dict[str, Any]
GROUP = (
    "op",
    "ranks",
    "nodes",
    "loop",
    "buffers",
    "heap",
    "protocol",
    "short",
    "state",
    "window",
    "target",
    "beside",
)


def show_summary(rows: list[Row]) -> None:
    """Prints a table for each operation and state of the machine, and below it the geometric mean of the ratios and
    the worst cell; at the end both for each state over all operations. A ratio is in brackets if a host is missing, since its
    job was not in that state for long enough. Means leave such ratios out; if no others remain, the present hosts are named."""
    for machine in dict.fromkeys(row["machine"] for row in rows if "machine" in row):
        print(machine)
    hosts = list(dict.fromkeys(row["host"] for row in rows))
    groups: dict[tuple, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(key) for key in GROUP), []).append(row)
    overall: dict[str, list[tuple[str, float]]] = {}
    for key, found in groups.items():
        cells = cells_of(found)
        if not any(cell["ratio"] for cell in cells):
            continue
        about = dict(zip(GROUP, key))
        print(f"\n{heading(about, found)}")
        _table(cells, hosts)
        complete = [cell for cell in cells if cell["ratio"] and len(cell["plain"]) == len(hosts)]
        ratios = [(f"{name_of(about)} of {cell['bytes']}", cell["ratio"]) for cell in complete]
        if len(cells) > 1:
            print(f"  {_mean_and_worst(ratios, found)}")
        overall.setdefault(about["state"], []).extend(ratios)
    if len(groups) > 1:
        print()
        for state, ratios in overall.items():
            there = [row for row in rows if row["state"] == state]
            print(f"{_state(state)}: {_mean_and_worst(ratios, there)}")


def cells_of(rows: Iterable[Row]) -> list[Row]:
    """A cell for each size, out of rows that differ by size, mode and host alone.

    Its keys: bytes, plain (microseconds by host), nearfield (the same with Nearfield), best (the lowest plain time), ratio
    (the median of Nearfield's times, divided by best; None if either is missing), worst (the largest of Nearfield's times,
    divided by best), own (the largest ratio to the same host), spread (of the ratio: lower quartile by the host's upper one, and
    vice versa), algorithm, predicted, floor (the median ratio to bare code in the same job) and body (the name of that code).
    """
    cells = []
    rows = list(rows)
    for size in sorted({row["bytes"] for row in rows}):
        of = {
            mode: {row["host"]: row for row in rows if row["bytes"] == size and row["mode"] == mode}
            for mode in ("plain", "nearfield", "floor")
        }
        plain, ours, bare = of["plain"], of["nearfield"], of["floor"]
        cell: Row = {"bytes": size, "ratio": None}
        cell["plain"] = {host: time_of(row) for host, row in plain.items()}
        cell["nearfield"] = {host: time_of(row) for host, row in ours.items()}
        if plain and ours:
            best = min(plain.values(), key=time_of)
            cell["best"] = time_of(best)
            times = cell["nearfield"].values()
            cell["ratio"] = statistics.median(times) / time_of(best)
            cell["worst"] = max(times) / time_of(best)
            cell["own"] = max(
                (time_of(ours[h]) / time_of(plain[h]) for h in ours if h in plain), default=None
            )
            lower = statistics.median(row["lower"] for row in ours.values()) / best["upper"]
            upper = statistics.median(row["upper"] for row in ours.values()) / best["lower"]
            cell["spread"] = f"{lower:.2f}-{upper:.2f}"
            cell["algorithm"] = "/".join(dict.fromkeys(row["algorithm"] for row in ours.values()))
            predicted = [row["predicted"] for row in ours.values() if "predicted" in row]
            cell["predicted"] = statistics.median(predicted) if predicted else None
            against = [time_of(ours[host]) / time_of(bare[host]) for host in ours if host in bare]
            cell["floor"] = statistics.median(against) if against else None
            cell["body"] = "/".join(dict.fromkeys(row["algorithm"] for row in bare.values()))
        cells.append(cell)
    return cells


def time_of(row: Row) -> float:
    """Microseconds of a call: the median over blocks. Beside other processes it is the mean: a host that waits without yielding is quick in
    many blocks, in which all its ranks happen to run, but very slow in the others."""
    return row["mean" if row.get("beside") and "mean" in row else "median"]


def name_of(row: Row) -> str:
    """The operation of a row; of one-sided ones also the window and the target."""
    return f"{row['op']}, window {row['window']}, target {row['target']}" if row.get("window") else row["op"]


def geometric_mean(ratios: Iterable[float]) -> float:
    """The geometric mean of positive numbers."""
    return math.exp(statistics.fmean(map(math.log, ratios)))


def _mean_and_worst(ratios: list[tuple[str, float]], rows: list[Row]) -> str:
    if not ratios:
        there = dict.fromkeys(row["host"] for row in rows)
        return f"no cell with all hosts; in this state: {', '.join(there)}"
    cell, worst = max(ratios, key=lambda ratio: ratio[1])
    mean = geometric_mean(ratio for _, ratio in ratios)
    return f"geometric mean {mean:.2f}, worst {worst:.2f} ({cell} bytes), cells: {len(ratios)}"


def heading(about: Row, rows: list[Row]) -> str:
    """The title of a group of cells: the values that they share (`about`, by GROUP), and the median time of a cache line in `rows`."""
    words = [name_of(about), f"{about['ranks']} ranks", f"{about['buffers']} buffers"]
    words += [f"loop {about['loop']}"] * (about["loop"] not in (None, OWN_LOOP))
    words += [f"{about['nodes']} nodes"] * bool(about["nodes"])
    words += [f"heap {about['heap']}"] * (about["heap"] == "off")
    words += [f"protocol {about['protocol']}"] * (about["protocol"] not in (None, "auto"))
    words += [f"loops of {about['short']} calls"] * bool(about["short"])
    words += [f"{about['beside']} beside"] * bool(about["beside"])
    lines = [row["line_ns"] for row in rows if row.get("line_ns")]
    middle = f" (median {statistics.median(lines):.0f})" if lines else ""
    return f"{', '.join(words)}, {_state(about['state'])}{middle}"


def _state(state: str) -> str:
    return "lines not timed" if state == NOT_TIMED else f"a line one way: {state}"


def _table(cells: list[Row], hosts: list[str]) -> None:
    """One line for each cell; columns that would be empty are left out."""
    cells = [cell for cell in cells if cell["ratio"] is not None]
    columns: dict[str, list[str]] = {"bytes": [str(cell["bytes"]) for cell in cells]}
    for host in hosts:
        columns[f"{host} us"] = [microseconds(cell["plain"].get(host)) for cell in cells]
    columns["Nearfield us"] = [microseconds(statistics.median(cell["nearfield"].values())) for cell in cells]
    columns["ratio" if len(hosts) == 1 else "to best"] = [
        f"{cell['ratio']:.2f}" if len(cell["plain"]) == len(hosts) else f"({cell['ratio']:.2f})"
        for cell in cells
    ]
    columns["spread"] = [cell["spread"] for cell in cells]
    if len(hosts) > 1:
        columns["worst job's"] = [f"{cell['worst']:.2f}" for cell in cells]
        columns["to own"] = [f"{cell['own']:.2f}" if cell["own"] else "-" for cell in cells]
    columns["algorithm"] = [cell["algorithm"] for cell in cells]
    if any(cell["predicted"] for cell in cells):
        columns["model us"] = [microseconds(cell["predicted"]) for cell in cells]
    if any(cell["floor"] for cell in cells):
        columns["x floor"] = [f"{cell['floor']:.2f}" if cell["floor"] else "-" for cell in cells]
        columns["floor"] = [cell["body"] or "-" for cell in cells]
    styles = ["red" if cell["ratio"] > 1.05 else None for cell in cells]
    print_columns(list(columns), list(zip(*columns.values())), styles)


def microseconds(time: float | None) -> str:
    """A time as tables show it."""
    return (
        "-" if time is None else f"{time:.3f}" if time < 1 else f"{time:.2f}" if time < 100 else f"{time:.0f}"
    )


def speed_word(ratio: float) -> str:
    """Times as fast, out of a ratio of times: 0.95, 1.3, 12, 250."""
    speed = 1 / ratio
    return f"{speed:.2f}" if speed < 1.05 else f"{speed:.1f}" if speed < 10 else f"{speed:.0f}"


def size_word(size: int) -> str:
    """8, 16K, 1M."""
    for unit, word in ((1 << 20, "M"), (1 << 10, "K")):
        if size >= unit:
            return f"{size // unit}{word}"
    return str(size)


def pairs(rows: Iterable[Row]) -> list[tuple[Row, Row]]:
    """Pairs of rows of the same cell and host: the plain one and Nearfield's."""
    keys = (*GROUP, "bytes", "host")
    plain = {tuple(row.get(k) for k in keys): row for row in rows if row["mode"] == "plain"}
    cells = [(tuple(row.get(k) for k in keys), row) for row in rows if row["mode"] == "nearfield"]
    return [(plain[key], row) for key, row in cells if key in plain]
