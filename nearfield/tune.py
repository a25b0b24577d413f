"""`nearfield tune`: forces every promising algorithm in turn and writes what was fastest, for NEARFIELD_CHOOSE=file."""

from __future__ import annotations

import json
import os
import platform
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from nearfield import toml
from nearfield.hosts import Host, find_hosts, launch_command, launcher_environment
from nearfield.libraries import program
from nearfield.model import ask, predict, stored
from nearfield.values import check_words

Cell = dict[str, Any]
WORTH = 4.0  # algorithms whose estimate is beyond so many times the best are not run


def stored_tuning() -> Path:
    """Where ranks look for the file, unless NEARFIELD_TUNED names another."""
    return stored(".tuned.toml")


def tune(
    operations: list[str], ranks: list[int], sizes: list[int], host_name: str, seconds: float, out: Path
) -> list[Cell]:
    """Measures all cells and writes `out`. Returns the cells: op, ranks, bytes, algorithm, staged, us.

    `seconds`: of each operation and size. Raises ValueError for hosts that are not there and jobs that fail.
    """
    found = find_hosts()
    check_words([host_name], found, "host")
    console = Console(stderr=True)
    columns = TextColumn("{task.description:40}"), BarColumn(), TextColumn("{task.completed}/{task.total}")
    cells: list[Cell] = []
    jobs = [(op, n) for op in operations if op != "barrier" for n in ranks]
    with Progress(
        *columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("", total=len(jobs) * len(sizes))
        for op, count in jobs:
            progress.update(task, description=f"{op}, {count} ranks")
            cells += _job(found[host_name], op, count, sizes, seconds, lambda: progress.advance(task))
    write(cells, out)
    return cells


def worker_command(
    host: Host, op: str, ranks: int, sizes: list[int], seconds: float, also: tuple[str, ...] = ()
) -> list[str]:
    """The job that forces, for each size, all algorithms worth it at any of them, and `also`, in turn."""
    names: dict[str, None] = {}
    for cell in predict(op, [ranks], sizes):
        least = min(cell["ns"].values())
        names |= {name: None for name, ns in cell["ns"].items() if ns <= WORTH * least}
        names[cell["staged"]] = None
    words = [op, ",".join(map(str, sizes)), "tune", str(seconds), ",".join([*names, *also])]
    return launch_command(host, ranks, [str(program(f"nearfield-bench-{host.abi}")), *words])


def _job(host: Host, op: str, ranks: int, sizes: list[int], seconds: float, advance) -> list[Cell]:
    _, *table = ask("explain", op, str(ranks), str(sizes[0]), "here")
    without_reach = {row["name"] for row in table if row["reach"] == "no"}
    rows: list[Cell] = []
    with tempfile.TemporaryFile("w+") as errors:
        job = subprocess.Popen(
            worker_command(host, op, ranks, sizes, seconds),
            env=launcher_environment(host, nearfield=True),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        assert job.stdout is not None
        for line in job.stdout:
            if not line.startswith("{"):
                continue
            row = json.loads(line)
            if "done" in row:
                advance()
            else:
                rows.append(row)
        if job.wait():
            errors.seek(0)
            raise ValueError(f"{op} on {ranks} ranks failed:\n{errors.read()[-2000:]}")
    cells = []
    for size in sizes:
        times = {row["algorithm"]: row["median"] for row in rows if row["bytes"] == size}
        if not times:
            continue
        best = min(times, key=times.__getitem__)
        staged = min((name for name in times if name in without_reach), key=times.__getitem__, default=None)
        cells.append(
            {"op": op, "ranks": ranks, "bytes": size, "algorithm": best, "staged": staged, "us": times[best]}
        )
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
    """The file's cell for a call on just so many ranks; None without one (ranks also take the nearest number's)."""
    if not path.exists():
        return None
    cells = [c for c in toml.loads(path.read_text()).get("cell", []) if c["op"] == op and c["ranks"] == ranks]
    return next((c for c in cells if c["bytes"] // 2 < size <= c["bytes"]), None)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()
