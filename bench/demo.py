"""`nearfield demo`: what programs gain, when, why, and whether their results stay the same.

Five programs out of examples run plain and under Nearfield, with a CPU for each rank and with four ranks on each CPU; then
operations by size. A report of it all goes to one HTML page, and the figures to a JSON file beside it.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from bench.apps import APPS, BOTH, LIMIT, MODES, PLAIN, compare
from bench.demo_figures import (
    OPERATIONS,
    PARTS,
    Carried,
    Program,
    Row,
    pairs_of,
    part_ratios,
    ratio_words,
    ratios_of,
    safe_words,
)
from nearfield.bench import run_bench
from nearfield.hosts import find_hosts, launch_command, launcher_environment
from nearfield.libraries import DEFAULT_HEAP
from nearfield.machine import describe_machine
from nearfield.progress import Progress
from nearfield.statistics import PATTERN, VARIABLE, Statistics, read_statistics
from nearfield.summary import size_word, speed_word
from nearfield.tables import print_table, styled

HOST = "mpich"
# Small, middle and large; with many ranks on a CPU a plain host takes tens of milliseconds a call.
SIZES = (8, 1 << 10, 16 << 10, 128 << 10, 1 << 20)
OVERSUBSCRIBED_SIZES = (8, 16 << 10)
JOB_SECONDS = 1.0  # as long as none has ended
PROGRAMS = (
    Program("fft", "3-D FFT", 64, 12),
    Program("matmul", "product of matrices", 1024, 4, "bcast"),
    Program("stencil", "2-D stencil", 256, 300, "messages"),
    Program("mesh", "adaptive mesh", 8, 4),
    Program("training", "training of a network", 16, 4),
)


def run_demo(out: Path, full: bool, programs: tuple[Program, ...] = PROGRAMS) -> None:
    """Runs the demo and writes the report to `out`, its figures beside it. Raises ValueError where results differ."""
    from bench.demo_page import write_demo  # matplotlib takes a second

    found = find_hosts()
    if HOST not in found:
        raise ValueError("the embedded MPICH is not installed; run `make build`")
    cpus = len(os.sched_getaffinity(0))
    few, many = 2, 4 * cpus
    others = [host for host in ("openmpi", "impi") if host in found] if full else []
    modes = MODES if full else (PLAIN, BOTH)
    runs = {few: 3, many: 3 if full else 1}
    timed = [(few, name, SIZES) for name in OPERATIONS]
    timed += [(many, name, OVERSUBSCRIBED_SIZES) for name in OPERATIONS[1:] if full]
    rows: list[Row] = []
    operations: list[Row] = []
    carried: dict[str, Carried] = {}
    jobs_of_program = {ranks: runs[ranks] * (len(modes) + len(others)) for ranks in runs}
    with Jobs(len(programs) * (sum(jobs_of_program.values()) + 1) + 2 * len(timed)) as jobs:
        for ranks, expected in jobs_of_program.items():
            measured: list[Row] = []
            for program in programs:
                jobs.begin(f"{program.title}, {ranks} ranks", expected)
                for hosts, ways in (([HOST], modes), (others, (PLAIN,))):
                    measured += compare(
                        program.app,
                        [ranks],
                        hosts,
                        [program.points],
                        program.loops,
                        runs[ranks],
                        [program.form] if program.form else [],
                        modes=ways,
                        silent=True,
                    )
            rows += measured
            jobs.clear()
            title = f"What would my program gain? Plain {HOST} and Nearfield, {ranks} ranks on {cpus} CPUs"
            print(styled(f"\n{title}", "bold"))
            show_programs(measured, programs)
        for ranks, name, sizes in timed:
            jobs.begin(f"{name}, {ranks} ranks", 2)
            seconds = 0.1 if full else 0.03
            operations += run_bench([name], [ranks], list(sizes), [HOST], ["used"], seconds, silent=True)
        for program in programs:
            jobs.begin(f"{program.title}, with statistics", 1)
            carried[program.app] = carried_calls(program, few)
    print(styled("\nWhen? Times as fast as the plain host, buffers that are used", "bold"))
    show_operations(operations)
    print(styled("\nWhy? What Nearfield carried, of the first of 2 ranks", "bold"))
    print_table(
        ["program", "collectives", "messages", "by", "passed on"],
        [
            [program.title, str(one.collectives), str(one.messages), one.ways, str(one.to_host)]
            for program, one in ((program, carried[program.app]) for program in programs)
        ],
    )
    print(styled("\nIs it safe? All results were the same:", "bold"))
    print(f"  {safe_words(programs)}")
    out.with_suffix(".json").write_text(
        json.dumps({"machine": describe_machine(), "programs": rows, "operations": operations}, indent=1)
    )
    write_demo(out, rows, operations, programs, carried)
    print(f"\nReport: {out}, figures: {out.with_suffix('.json')}")


class Jobs(Progress):
    """Progress in jobs, of which all take about the same time, so that the rest of it is known."""

    def __init__(self, total: int) -> None:
        super().__init__(total)
        self._next = 0

    def begin(self, text: str, jobs: int = 1) -> None:
        """Shows the name of the next step, which consists of `jobs` jobs."""
        self.done, self._next = self._next, self._next + jobs
        seconds = (time.monotonic() - self.begun) / self.done if self.done else JOB_SECONDS
        super().begin(f"{text}, about {seconds * (self.total - self.done):.0f} s left")


def show_programs(rows: list[Row], programs: tuple[Program, ...]) -> None:
    """A row for each program and number of ranks."""
    words = []
    for program, plain, ours in pairs_of(rows, programs):
        words.append([program.title, str(ours["ranks"])])
        words[-1] += [f"{row['seconds'] * 1000:.2f}" for row in (plain, ours)]
        words[-1].append(f"{plain['seconds'] / ours['seconds']:.2f}")
        parts = [1 / ratio if ratio else None for ratio in part_ratios(rows, ours)]
        words[-1] += ratio_words(parts) * any(parts)
        words[-1].append(f"{ours['cpu'] / plain['cpu'] - 1:+.0%}")
        words[-1] += [f"{row['share']:.0%}" for row in (plain, ours)]
    print_table(
        [
            "program",
            "ranks",
            "plain ms",
            "Nearfield ms",
            "times faster",
            *(PARTS if len(words[0]) > 8 else []),
            "CPU time",
            "in MPI, plain",
            "Nearfield",
        ],
        words,
    )


def show_operations(rows: list[Row]) -> None:
    """A table for each number of ranks, a row for each operation, a column for each size in bytes."""
    for ranks in sorted({row["ranks"] for row in rows}):
        ratios = ratios_of(rows, ranks)
        sizes = sorted({size for one in ratios.values() for size in one})
        print_table(
            [f"{ranks} ranks", *map(size_word, sizes)],
            [
                [name, *(speed_word(one[size]) if size in one else "-" for size in sizes)]
                for name, one in ratios.items()
            ],
        )


def carried_calls(program: Program, ranks: int) -> Carried:
    """Runs the program once more, with statistics. Raises ValueError where it fails."""
    host = find_hosts()[HOST]
    command = APPS[program.app].command(host, program.points, program.loops, program.form)
    env = launcher_environment(host, True, DEFAULT_HEAP) | {"NEARFIELD_STATS": "1"}
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(
            launch_command(host, ranks, command),
            env=env | {VARIABLE: f"{directory}/{PATTERN}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        if done.returncode:
            raise ValueError(f"{program.app} failed:\n{done.stderr}")
        return carried_by(read_statistics(Path(directory))[0], done.stderr.strip())


def carried_by(rank: Statistics, text: str) -> Carried:
    """How a program's calls were served, by a rank's statistics; `text` is the printed form of these."""
    ways = {
        "fastboxes": "messages_by_fastboxes",
        "the queue": "messages_by_the_queue",
        "copies without a buffer": "messages_direct",
        "copy buffers": "messages_by_copy_buffers",
    }
    operations = rank.operations.values()
    return Carried(
        sum(operation.carried for operation in operations),
        rank.sent,
        ", ".join(f"{way} {rank.counts[row]}" for way, row in ways.items() if rank.counts[row]),
        sum(operation.to_the_host for operation in operations) + rank.counts["messages_to_the_host"],
        text,
    )
