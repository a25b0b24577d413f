"""`nearfield tune`: forces every promising algorithm in turn and writes what was fastest, for NEARFIELD_CHOOSE=file."""

from __future__ import annotations

import json
import os
import platform
import re
import socket
from pathlib import Path
from typing import Any

from nearfield.choices import measure
from nearfield.hosts import find_hosts, parse_hosts
from nearfield.model import ask, stored
from nearfield.progress import Progress

Cell = dict[str, Any]


def stored_tuning() -> Path:
    """The path of the file that ranks read, unless NEARFIELD_TUNED names another."""
    return stored(".tuned.toml")


def tune(
    operations: list[str], ranks: list[int], sizes: list[int], host_name: str, seconds: float, out: Path
) -> list[Cell]:
    """Measures all cells and writes `out`. Returns the cells: op, ranks, bytes, algorithm, staged, us.

    `seconds`: time for each operation and size. Raises ValueError for hosts that are not installed and jobs that fail.
    """
    host = find_hosts()[parse_hosts(host_name)[0]]
    cells: list[Cell] = []
    jobs = [(op, count) for op in operations if op != "barrier" for count in ranks]
    with Progress(len(jobs)) as progress:
        for number, (op, count) in enumerate(jobs):
            progress.begin(f"{op}, {count} ranks")
            _, *table = ask("explain", op, str(count), str(sizes[0]), "here")
            without_reach = {row["name"] for row in table if row["reach"] == "no"}
            for cell in measure(host, op, count, sizes, seconds):
                us = cell["forced_us"]
                staged = min((name for name in us if name in without_reach), key=us.__getitem__, default=None)
                cells.append({name: cell[name] for name in ("op", "ranks", "bytes")})
                cells[-1] |= {"algorithm": cell["best"], "staged": staged, "us": us[cell["best"]]}
            progress.at(number + 1)
    write(cells, out)
    return cells


def write(cells: list[Cell], out: Path) -> None:
    """Writes the file that ranks read (engine/choosing/tuned.hpp says what it holds)."""
    lines = ["# Written by `nearfield tune`; NEARFIELD_CHOOSE=file loads it.", "", "[machine]"]
    about = {"name": socket.gethostname(), "processor": _processor(), "kernel": platform.release()}
    lines += [f"{key} = {json.dumps(value)}" for key, value in about.items()]
    lines.append(f"cpus = {len(os.sched_getaffinity(0))}")
    for cell in cells:
        lines += ["", "[[cell]]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in cell.items() if value is not None]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n".join(lines) + "\n")


def tuned_cell(op: str, ranks: int, size: int, path: Path) -> Cell | None:
    """The file's cell for a call on exactly `ranks` ranks, or None. (At run time the cell of the nearest number of ranks counts.)"""
    if not path.exists():
        return None
    for block in path.read_text().split("[[cell]]")[1:]:  # as write() leaves them
        cell = {name: json.loads(value) for name, value in re.findall(r"^(\w+) = (.+)$", block, re.MULTILINE)}
        if (cell["op"], cell["ranks"]) == (op, ranks) and cell["bytes"] // 2 < size <= cell["bytes"]:
            return cell
    return None


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()
