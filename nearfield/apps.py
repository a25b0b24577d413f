"""`nearfield bench --app NAME`: an application out of examples, plain and under Nearfield, in turn.

A row has app, form (of its communication, empty where there is one only), ranks, nodes, host, version, mode (plain or
nearfield), points (a side), loops, heap, seconds (wall time of a loop), cpu (CPU time of a loop, all ranks), mpi and mpi_most (time in MPI
of a loop, waiting included, the ranks' mean and the largest), each the median over runs, and runs.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.progress import track

from nearfield.bench import host_version, stop
from nearfield.hosts import Host, find_hosts, launch_command, launcher_environment, python_of
from nearfield.libraries import DEFAULT_HEAP, ROOT, program
from nearfield.node_jobs import even_blocks, run_job
from nearfield.nodes import Nodes, several_nodes
from nearfield.tables import print_table

Row = dict[str, Any]
FIGURES = ("seconds", "cpu", "mpi", "mpi_most")
LIMIT = 600  # seconds, of a run


@dataclass(frozen=True)
class App:
    """An application: its program in examples, what a size means, and what is measured unless asked otherwise.

    `same_bits`: the result depends on points and loops alone, not on form, ranks and host.
    """

    program: str
    shape: str
    points: tuple[int, ...]
    loops: int
    forms: tuple[str, ...] = ("",)
    same_bits: bool = False

    def command(self, host: Host) -> list[str]:
        """What a rank runs: the script, or what was built of the program in C. Raises ValueError, NotBuilt."""
        if self.program.endswith(".py"):
            return [python_of(host), str(ROOT / "examples" / self.program)]
        return [str(program(f"nearfield-{self.program}-{host.abi}"))]


APPS = {
    "fft": App("fft3d.py", "{0}^3", (32, 64), 50),
    "matmul": App("matmul.py", "{0} x {0}", (2048,), 5, ("bcast", "allgather", "allreduce"), same_bits=True),
    "stencil": App("stencil", "{0} x {0}", (256, 1024), 1000, ("messages", "put", "shared"), same_bits=True),
}


@dataclass(frozen=True)
class Cell:
    """What is measured both ways."""

    app: str
    host: Host
    ranks: int
    points: int
    form: str

    def __str__(self) -> str:
        return f"{self.app} {self.form}".strip() + f" {self.points}, {self.ranks} ranks, {self.host.name}"


def compare(
    name: str,
    ranks: Sequence[int],
    hosts: Sequence[str],
    points: Sequence[int] = (),
    loops: int = 0,
    runs: int = 3,
    forms: Sequence[str] = (),
    options: Sequence[str] = (),
    nodes: int = 1,
    heap: str = DEFAULT_HEAP,
) -> list[Row]:
    """All cells, `runs` times each way in the order A B B A; what is empty or 0 is as APPS has it.

    `options` are the program's own; on more than one of `nodes` ranks are placed in blocks, and each node has its part of
    the CPUs. Raises ValueError where results differ by a bit, where a job fails, and for what there is not; NotBuilt.
    """
    if name not in APPS:
        raise ValueError(f"there is no application {name}; there are {', '.join(APPS)}")
    app, found = APPS[name], find_hosts()
    for host in hosts:
        if host not in found:
            raise ValueError(f"there is no host {host}; found: {', '.join(found)}")
    for form in forms:
        if form not in app.forms:
            raise ValueError(
                f"{name} has no form {form}; it has {', '.join(filter(None, app.forms)) or 'one only'}"
            )
    if nodes > min(ranks):
        raise ValueError(f"{min(ranks)} ranks are too few for {nodes} nodes")
    loops = loops or app.loops
    cells = [
        Cell(name, found[host], p, n, form)
        for form in forms or app.forms
        for p in ranks
        for n in points or app.points
        for host in hosts
    ]
    console = Console(stderr=True)
    rows: list[Row] = []
    first: dict[int, tuple[str, Cell]] = {}  # of each number of points, what all others have to give
    with several_nodes(nodes, own_cpus=True) as bed:
        for cell in track(cells, name, console=console, disable=not console.is_terminal):
            command = [*app.command(cell.host), *options, "--size", str(cell.points), "--loops", str(loops)]
            command += ["--form", cell.form] if cell.form else []
            about = {"app": name, "form": cell.form, "ranks": cell.ranks, "nodes": nodes}
            about |= {"host": cell.host.name, "version": host_version(cell.host), "points": cell.points}
            about |= {"loops": loops, "heap": heap, "runs": runs}
            both = _both(cell, command, runs, heap, bed, not console.is_terminal)
            if app.same_bits:
                checksum = both["plain"][0]["checksum"]
                expected, whose = first.setdefault(cell.points, (checksum, cell))
                if checksum != expected:
                    raise ValueError(f"the results of {cell} and of {whose} differ: {checksum}, {expected}")
            for mode, printed in both.items():
                medians = {key: statistics.median(float(one[key]) for one in printed) for key in FIGURES}
                rows.append(about | {"mode": mode} | medians)
    return rows


def _both(
    cell: Cell, command: list[str], runs: int, heap: str, bed: Nodes | None, tell: bool
) -> dict[str, list[dict[str, str]]]:
    """What the runs of each mode printed, plain first. Raises ValueError where results differ by a bit."""
    printed: dict[str, list[dict[str, str]]] = {"plain": [], "nearfield": []}
    for turn in range(2 * runs):
        mode = "nearfield" if turn % 4 in (1, 2) else "plain"
        if tell:
            print(cell, mode, file=sys.stderr, flush=True)
        printed[mode].append(_run(cell, command, mode == "nearfield", heap, bed))
    sums = {one["checksum"] for of_mode in printed.values() for one in of_mode}
    if len(sums) > 1:
        raise ValueError(f"the results of {cell} differ: {', '.join(sorted(sums))}")
    return printed


def _run(cell: Cell, command: list[str], nearfield: bool, heap: str, bed: Nodes | None) -> dict[str, str]:
    """One run. Returns what rank 0 printed, by name. Raises ValueError when it fails."""
    env = launcher_environment(cell.host, nearfield, heap)
    if bed:
        placement = even_blocks(cell.ranks, len(bed.names))
        ended = run_job(bed, cell.host, placement, command, env, LIMIT)
        good, output, text = ended.returncode == 0 and not ended.timed_out, ended.out[0], ended.text
    else:
        with subprocess.Popen(
            launch_command(cell.host, cell.ranks, command),
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as job:
            try:
                output, errors = job.communicate(timeout=LIMIT)
            except subprocess.TimeoutExpired:
                raise ValueError(f"{cell} did not end within {LIMIT} s") from None
            finally:
                stop(job)
        good, text = job.returncode == 0, output + errors
    if not good:
        raise ValueError(f"{cell} failed:\n{text}")
    return dict(line.split(": ", 1) for line in output.splitlines() if ": " in line)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.{2 if seconds >= 1e-3 else 4}f}"


def show(rows: list[Row]) -> None:
    """Prints each cell with its times in milliseconds and Nearfield's by the host's."""
    words = []
    for theirs, ours in zip(rows[::2], rows[1::2], strict=True):
        shape = APPS[ours["app"]].shape.format(ours["points"])
        words.append([str(ours["ranks"]), shape, *filter(None, [ours["form"]]), ours["host"]])
        for key in ("seconds", "cpu", "mpi"):
            words[-1] += [_milliseconds(row[key]) for row in (theirs, ours)]
            words[-1].append(f"{ours[key] / theirs[key]:.2f}" if theirs[key] else "-")
    titles = ["ranks", "points", *(["form"] if rows[0]["form"] else []), "host"]
    for figure in ("wall ms", "CPU ms", "MPI ms"):
        titles += [figure, "with Nearfield", "ratio"]
    print_table(titles, words)
