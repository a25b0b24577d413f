"""Applications out of examples, plain and under Nearfield, in turn.

    python bench/apps.py mesh --ranks 2,8 --hosts mpich,openmpi --parts    # also with the heap alone and with MPI alone

A row has app, form (of its communication, empty where there is one only), ranks, nodes, host, version, mode (one of
MODES), points (of a side), loops, heap, runs, pinned (each rank has a CPU of its own), beside (number and kind of busy processes; "": none)
and figures of a loop: seconds (wall time), cpu (CPU time of all ranks), mpi and mpi_most (time in MPI with waiting: the ranks' mean and the
largest), share (mpi divided by seconds). Each figure is the median over runs; NAME_lower and NAME_upper are the quartiles, seconds_all all
runs. calls and bytes are counts of the program: the MPI calls of all ranks, and the bytes that these send.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from nearfield.bench import Bed, host_version, stop  # noqa: E402
from nearfield.beside import ALONE, Beside  # noqa: E402
from nearfield.hosts import (  # noqa: E402
    Host,
    bound,
    find_hosts,
    launch_command,
    launcher_environment,
    parse_hosts,
    python_of,
)
from nearfield.libraries import DEFAULT_HEAP, NAMES, NotBuilt, paths_to_preload, program  # noqa: E402
from nearfield.progress import tracked  # noqa: E402
from nearfield.tables import print_table  # noqa: E402
from nearfield.values import at_least, check_words, parse_points, parse_ranks  # noqa: E402

Row = dict[str, Any]
PLAIN, HEAP, MPI, BOTH = MODES = (
    "plain",
    "heap",
    "mpi",
    "nearfield",
)  # as it is, the heap alone, MPI alone, both
FIGURES = ("seconds", "cpu", "mpi", "mpi_most")
COUNTS = ("calls", "bytes")
LIMIT = 600  # seconds, of a run


@dataclass(frozen=True)
class App:
    """An application: its program in examples, the meaning of a size, and the default of what is measured.

    `same_bits`: the result depends only on points and loops, not on form, ranks and host. `rounding`: MPI does not define the
    order in which numbers are added, so the loss is compared, not the checksum; it may differ by this share of itself.
    """

    program: str
    shape: str
    points: tuple[int, ...]
    loops: int
    forms: tuple[str, ...] = ("",)
    same_bits: bool = False
    rounding: float = 0

    def same(self, one: dict[str, str], other: dict[str, str]) -> bool:
        """Whether two runs of one problem printed equal results."""
        if not self.rounding:
            return one["checksum"] == other["checksum"]
        return abs(float(one["loss"]) - float(other["loss"])) <= self.rounding * abs(float(other["loss"]))

    def result(self, printed: dict[str, str]) -> str:
        """The printed value that is compared."""
        return printed["loss" if self.rounding else "checksum"]

    def command(self, host: Host, points: int, loops: int, form: str = "") -> list[str]:
        """The command of a rank: the Python script or the compiled C program, with its arguments. Raises ValueError, NotBuilt."""
        if self.program.endswith(".py"):
            words = [python_of(host), str(ROOT / "examples" / self.program)]
        else:
            words = [str(program(f"nearfield-{self.program}-{host.abi}"))]
        return [*words, "--size", str(points), "--loops", str(loops), *(["--form", form] if form else [])]


APPS = {
    "fft": App("fft3d.py", "{0}^3", (32, 64), 50),
    "matmul": App("matmul.py", "{0} x {0}", (2048,), 5, ("bcast", "allgather", "allreduce"), same_bits=True),
    "stencil": App("stencil", "{0} x {0}", (256, 1024), 1000, ("messages", "put", "shared"), same_bits=True),
    "mesh": App("mesh", "blocks of {0}^3", (8, 16), 10, same_bits=True),
    "training": App("training.py", "{0} channels", (8, 16), 20, same_bits=True, rounding=1e-4),
}


@dataclass(frozen=True)
class Cell:
    """One problem that is measured plain and with Nearfield."""

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
    heap: str = DEFAULT_HEAP,
    modes: Sequence[str] = (PLAIN, BOTH),
    beside: Beside = ALONE,
    bed: Bed | None = None,
    silent: bool = False,
) -> list[Row]:
    """Measures all cells, `runs` times in each of `modes` in the order A B B A. Arguments that are empty or 0 have the defaults of APPS.

    `options` are the program's own. Each rank is bound to a CPU if there are enough, except on a `bed`. `beside`: busy processes meanwhile.
    `silent`: shows no progress. Raises NotBuilt; ValueError if results differ (see App), a job fails, or an argument is unknown.
    """
    found = find_hosts()
    check_words([name], APPS, "application")
    check_words(hosts, found, "host")
    app = APPS[name]
    for form in forms:
        if form not in app.forms:
            raise ValueError(
                f"{name} has no form {form}; it has {', '.join(filter(None, app.forms)) or 'one only'}"
            )
    nodes = bed.nodes if bed else 1
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
    rows: list[Row] = []
    # Of each number of points, what all others have to give.
    first: dict[int, tuple[dict[str, str], Cell]] = {}
    for cell in cells if silent else tracked(cells, name):
        command = [*app.command(cell.host, cell.points, loops, cell.form), *options]
        about = {"app": name, "form": cell.form, "ranks": cell.ranks, "nodes": nodes}
        about |= {"host": cell.host.name, "version": host_version(cell.host), "points": cell.points}
        pinned = not bed and cell.ranks <= len(os.sched_getaffinity(0))
        about |= {"loops": loops, "heap": heap, "runs": runs, "pinned": pinned, "beside": str(beside)}
        if pinned:
            command = bound(command)
        with beside.running():
            printed = _all(app, cell, command, runs, heap, bed, not (silent or sys.stderr.isatty()), modes)
        if app.same_bits:
            one = printed[modes[0]][0]
            other, whose = first.setdefault(cell.points, (one, cell))
            if not app.same(one, other):
                results = f"{app.result(one)}, {app.result(other)}"
                raise ValueError(f"the results of {cell} and of {whose} differ: {results}")
        rows += [about | {"mode": mode} | _figures(of_mode) for mode, of_mode in printed.items()]
    return rows


def _figures(printed: list[dict[str, str]]) -> Row:
    """Medians and quartiles of what the runs of a cell printed."""
    figures: Row = {"seconds_all": [float(one["seconds"]) for one in printed]}
    times = {key: [float(one[key]) for one in printed] for key in FIGURES}
    times["share"] = [mpi / seconds for mpi, seconds in zip(times["mpi"], times["seconds"], strict=False)]
    for key, values in times.items():
        values.sort()
        figures[key] = statistics.median(values)
        for name, part in (("lower", 0.25), ("upper", 0.75)):
            figures[f"{key}_{name}"] = values[round(part * (len(values) - 1))]
    return figures | {key: float(printed[0][key]) for key in COUNTS}


def _all(
    app: App,
    cell: Cell,
    command: list[str],
    runs: int,
    heap: str,
    bed: Bed | None,
    verbose: bool,
    modes: Sequence[str],
) -> dict[str, list[dict[str, str]]]:
    """What the runs of each mode printed, in the order of modes. Raises ValueError where results differ."""
    printed: dict[str, list[dict[str, str]]] = {mode: [] for mode in modes}
    for turn in range(runs):
        for mode in modes if turn % 2 == 0 else modes[::-1]:
            if verbose:
                print(cell, mode, file=sys.stderr, flush=True)
            printed[mode].append(_run(cell, command, mode, heap, bed))
    every = [one for of_mode in printed.values() for one in of_mode]
    if not all(app.same(one, every[0]) for one in every):
        raise ValueError(
            f"the results of {cell} differ: {', '.join(sorted({app.result(one) for one in every}))}"
        )
    return printed


def _environment(host: Host, mode: str, heap: str) -> dict[str, str]:
    if mode == HEAP:
        return launcher_environment(host, False) | {"LD_PRELOAD": paths_to_preload(NAMES[1:])[0]}
    return launcher_environment(host, mode != PLAIN, "off" if mode == MPI else heap)


def _run(cell: Cell, command: list[str], mode: str, heap: str, bed: Bed | None) -> dict[str, str]:
    """One run. Returns what rank 0 printed, by name. Raises ValueError when it fails."""
    env = _environment(cell.host, mode, heap)
    if bed:
        ended = bed.run(cell.host, cell.ranks, command, env, LIMIT)
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


def _time(row: Row, key: str) -> str:
    return _milliseconds(row[key])


def _range(row: Row, key: str) -> str:
    """A time in milliseconds with its quartiles."""
    lower, upper = (_milliseconds(row[f"{key}_{name}"]) for name in ("lower", "upper"))
    return f"{_milliseconds(row[key])} ({lower}-{upper})"


def by_cell(rows: list[Row]) -> list[dict[str, Row]]:
    """Rows by mode, of each cell."""
    cells: dict[tuple, dict[str, Row]] = {}
    for row in rows:
        key = tuple(row.get(name) for name in ("app", "form", "ranks", "points", "host"))
        cells.setdefault(key, {})[row["mode"]] = row
    return list(cells.values())


def best_plain(rows: list[Row], ours: Row) -> float:
    """The wall time of the quickest plain host that has run the same."""
    same = ("app", "form", "ranks", "points")
    return min(
        row["seconds"]
        for row in rows
        if row["mode"] == PLAIN and all(row.get(name) == ours.get(name) for name in same)
    )


def show(rows: list[Row]) -> None:
    """Prints each cell: times in milliseconds, wall time with its quartiles, Nearfield's by the host's, that of its parts by the
    host's, and Nearfield's by the best host's, and what is sent."""
    words = []
    cells = by_cell(rows)
    parts = [(name, mode) for name, mode in (("heap alone", HEAP), ("MPI alone", MPI)) if mode in cells[0]]
    several = len({row["host"] for row in rows}) > 1
    for cell in cells:
        theirs, ours = cell[PLAIN], cell[BOTH]
        shape = APPS[ours["app"]].shape.format(ours["points"])
        words.append([str(ours["ranks"]), shape, *filter(None, [ours["form"]]), ours["host"]])
        for key, told in (("seconds", _range), ("cpu", _time), ("mpi", _time)):
            words[-1] += [told(row, key) for row in (theirs, ours)]
            words[-1].append(f"{ours[key] / theirs[key]:.2f}" if theirs[key] else "-")
        words[-1] += [f"{cell[mode]['seconds'] / theirs['seconds']:.2f}" for _, mode in parts]
        words[-1] += [f"{ours['seconds'] / best_plain(rows, ours):.2f}"] * several
        words[-1] += [f"{theirs['share']:.0%}", f"{ours['share']:.0%}"]
        words[-1] += [f"{theirs['calls']:.0f}", f"{theirs['bytes'] / 1024:.0f}"]
    titles = ["ranks", "points", *(["form"] if rows[0]["form"] else []), "host"]
    for figure in ("wall ms", "CPU ms", "MPI ms"):
        titles += [figure, "with Nearfield", "ratio"]
    titles += [*(name for name, _ in parts), *["to best host"] * several]
    titles += ["share of MPI", "with Nearfield", "calls", "KiB sent"]
    if rows[0].get("beside"):
        print(f"{rows[0]['beside']} beside:")
    print_table(titles, words)


def main() -> None:
    """Measures, shows and writes what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("app", choices=APPS)
    add("--ranks", type=parse_ranks, default="2")
    add("--hosts", type=parse_hosts, default="mpich", help="intel is impi")
    sizes = "points a side, rows of a matrix, cells a side of a block, channels; a list"
    add("--points", type=parse_points, default=[], help=sizes)
    add(
        "--loops",
        type=at_least(0),
        default=0,
        help="transforms there and back, products, sweeps or steps in a run",
    )
    add("--runs", type=at_least(1), default=3, help="of each kind")
    add("--parts", action="store_true", help="also with the heap alone, and with MPI alone")
    add(
        "--form",
        help="matmul: some of bcast, allgather, allreduce; stencil: of messages, put, shared; all unless given",
    )
    add("--panel", type=at_least(1), default=256, help="matmul: width of the panels of the form bcast")
    add("--heap", choices=("shared", "off"), default=DEFAULT_HEAP)
    add("--nodes", type=at_least(1), default=1, help="over so many pretended nodes (docs/dev/testing.md)")
    add("--beside", default="0", help="beside so many busy processes, as `nearfield bench`")
    add("--json", type=Path, help="write the rows")
    asked = parser.parse_args()
    from bench.nodes import over_nodes
    from nearfield.bench import save

    try:
        with over_nodes(asked.nodes, own_cpus=True) as bed:
            rows = compare(
                *(asked.app, asked.ranks, asked.hosts, asked.points, asked.loops, asked.runs),
                asked.form.split(",") if asked.form else [],
                ["--panel", str(asked.panel)] if asked.app == "matmul" else [],
                heap=asked.heap,
                modes=MODES if asked.parts else (PLAIN, BOTH),
                beside=Beside.parse(asked.beside),
                bed=bed,
            )
    except (NotBuilt, ValueError) as error:
        parser.exit(2, f"bench/apps.py: {error}\n")
    show(rows)
    save(rows, asked.json, None, None)


if __name__ == "__main__":
    main()
