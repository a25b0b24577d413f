"""`nearfield bench`: runs the worker under each host and collects its rows.

A row is a dictionary with the keys op, bytes, ranks, host, version, machine, mode (plain, nearfield or floor), algorithm,
buffers, state (near, far, any), line_ns (a cache line one way between the first two ranks), heap, protocol, loop (0, or
after how many calls everything began afresh), median, lower, upper (microseconds) and iterations.

Under `used` and `modified` buffers these are microseconds of a call alone: each rank's time for writing what it sends and
reading what it gets is measured on buffers in its own caches, and the longest of them is subtracted from the slowest
rank's time (from a ping-pong, where one rank works after the other, both). What a program waits for because the call left
its arrays elsewhere stays in. At least a nanosecond is left.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from nearfield.hosts import Host, find_hosts, launch_command, launcher_environment
from nearfield.libraries import program
from nearfield.machine import describe_machine
from nearfield.operations import OPERATIONS
from nearfield.summary import pairs

Row = dict[str, Any]


def parse_sizes(text: str, quick: bool = False) -> list[int]:
    """Sizes in bytes out of "8:4M" (powers of two; every fourth one when `quick`) or "8,1K,1M"."""

    def number(word: str) -> int:
        units = {"K": 10, "M": 20, "G": 30}
        word = word.strip().upper()
        if word and word[-1] in units:
            return int(word[:-1]) << units[word[-1]]
        return int(word)

    if ":" not in text:
        return [number(word) for word in text.split(",")]
    first, last = (number(word) for word in text.split(":"))
    if first < 4 or last < first:
        raise ValueError(f"sizes {text}: they start at 4 bytes and grow")
    sizes = []
    while first <= last:
        sizes.append(first)
        first <<= 4 if quick else 1
    return sizes


def parse_ranks(text: str) -> list[int]:
    """Numbers of ranks out of "2:192" (powers of two, and the end) or "2,3,8"."""
    if ":" not in text:
        return [int(word) for word in text.split(",")]
    first, last = (int(word) for word in text.split(":"))
    if first < 1 or last < first:
        raise ValueError(f"ranks {text}: they start at 1 and grow")
    numbers = []
    while first < last:
        numbers.append(first)
        first *= 2
    return [*numbers, last]


# What the program does with its buffers around each call (bench/own_work.hpp).
BUFFERS = ("used", "modified", "warm", "cold")
# One row, whatever the sizes and buffers; the last four look for what is not there (bench/messages.hpp).
WITHOUT_SIZE = ("barrier", "test", "testall", "testany", "iprobe")
# Peers remember how messages went best; only a new job begins afresh (bench/loops.hpp).
JOBS_OF_LOOPS = 5
# Those with algorithms, and those that are made of messages.
COLLECTIVES = frozenset(OPERATIONS.split(",")) | {"alltoallv", "alltoallw"}


def run_bench(
    operations: list[str],
    ranks: list[int],
    sizes: list[int],
    hosts: list[str],
    buffers: list[str],
    seconds: float,
    algorithm: str = "",
    heap: str = "shared",
    floor: bool = False,
    protocols: list[str] | None = None,
    loop: int = 0,
) -> list[Row]:
    """Runs one job per operation, rank count, protocol and host; jobs of different hosts alternate. Returns all rows.

    `buffers` are some of BUFFERS; `protocols` are forced one after the other on messages (NEARFIELD_PROTOCOL).
    `loop`: times loops of so many calls from the very first one on, on new communicators, instead of what calls cost in
    the long run.

    Raises ValueError for hosts that are not installed, other buffers, and jobs that fail.
    """
    for kind in buffers:
        if kind not in BUFFERS:
            raise ValueError(f"there are no {kind} buffers; there are {', '.join(BUFFERS)}")
    found = find_hosts()
    for name in hosts:
        if name not in found:
            raise ValueError(f"there is no host {name}; found: {', '.join(found)}")
    ways = protocols or ["auto"]
    jobs = [(op, n, found[name], way) for op in operations for n in ranks for way in ways for name in hosts]
    rows: list[Row] = []
    console = Console(stderr=True)
    columns = TextColumn("{task.description:52}"), BarColumn(), TextColumn("{task.completed}/{task.total}")
    cells = len(sizes) * len(buffers)
    with Progress(
        *columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("", total=sum(1 if op in WITHOUT_SIZE else cells for op, _, _, _ in jobs))
        done = 0
        for op, count, host, way in jobs:
            description = f"{op}, {count} ranks, {host.name}" + (f", {way}" if protocols else "")
            progress.update(task, description=description)
            if not console.is_terminal:
                print(description, file=sys.stderr, flush=True)
            seen: set[tuple[int, str]] = set()

            def arrived(row: Row, seen=seen, before=done, description=description) -> None:
                seen.add((row["bytes"], row["buffers"]))
                text = f"{description}, {row['bytes']} B {row['buffers']}"
                progress.update(task, completed=before + len(seen), description=text)

            words = [*(["floor"] if floor else []), *([f"loop={loop}"] if loop else [])]
            again = JOBS_OF_LOOPS if loop and op not in COLLECTIVES else 1
            found = [
                _run_job(host, op, count, sizes, buffers, seconds, algorithm, heap, words, way, arrived)
                for _ in range(again)
            ]
            rows += found[0] if again == 1 else _merged(found)
            done += 1 if op in WITHOUT_SIZE else cells
            progress.update(task, completed=done)
    return rows


def _run_job(
    host: Host,
    op: str,
    ranks: int,
    sizes: list[int],
    buffers: list[str],
    seconds: float,
    algorithm: str,
    heap: str,
    words: list[str],
    protocol: str,
    arrived: Callable[[Row], None],
) -> list[Row]:
    """Runs one job and hands each row to `arrived` as it comes. Raises ValueError when the job fails."""
    arguments = [op, ",".join(map(str, sizes)), ",".join(buffers), str(seconds)]
    if algorithm or words:
        arguments += [algorithm, ",".join(words)]
    worker = [str(program(f"nearfield-bench-{host.abi}")), *arguments]
    # A plain host may need a second for a call when ranks outnumber CPUs.
    limit = 120 + len(sizes) * len(buffers) * (seconds * 4 + 60)
    origin = {"host": host.name, "version": host_version(host), "machine": describe_machine()}
    origin |= {"heap": heap, "protocol": protocol}
    rows: list[Row] = []
    late = threading.Event()
    with tempfile.TemporaryFile("w+") as errors:
        job = subprocess.Popen(
            launch_command(host, ranks, worker),
            env=launcher_environment(host, nearfield=True, heap=heap) | {"NEARFIELD_PROTOCOL": protocol},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        timer = threading.Timer(limit, lambda: (late.set(), stop(job)))
        timer.start()
        try:
            assert job.stdout is not None
            for line in job.stdout:
                if line.startswith("{"):
                    rows.append(origin | json.loads(line))
                    arrived(rows[-1])
            job.wait()
        finally:
            timer.cancel()
            stop(job)
        if job.returncode or late.is_set():
            errors.seek(0)
            why = f"did not end within {limit:.0f} s" if late.is_set() else "failed"
            raise ValueError(f"{op} on {ranks} ranks of {host.name} {why}:\n{errors.read()[-2000:]}")
    return rows


def stop(job: subprocess.Popen) -> None:
    """Ends a job that still runs: the launcher takes its ranks with it, or else all of its group goes."""
    if job.poll() is not None:
        return
    job.terminate()
    try:
        job.wait(5)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()


@functools.cache
def host_version(host: Host) -> str:
    """The host's own word for its version, one line."""
    command = [str(host.mpiexec), host.asks_version]
    try:
        text = subprocess.run(
            command, env=launcher_environment(host, False), capture_output=True, text=True, timeout=10
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    numbered = [line for line in lines if "Version" in line or "(" in line or "Open MPI" in line]
    return (numbered or lines or ["unknown"])[0].removeprefix("Version:").strip()


def _merged(jobs: list[list[Row]]) -> list[Row]:
    """One row of each cell, mode and state out of several jobs' rows: median and quartiles of their medians."""
    cells: dict[tuple, list[Row]] = {}
    for row in itertools.chain(*jobs):
        cells.setdefault(tuple(row[k] for k in ("bytes", "buffers", "mode", "state")), []).append(row)
    merged = []
    for found in cells.values():
        times = sorted(row["median"] for row in found)
        at = {key: times[round(q * (len(times) - 1))] for key, q in (("lower", 0.25), ("upper", 0.75))}
        calls = sum(row["iterations"] for row in found)
        merged.append(found[0] | at | {"median": statistics.median(times), "iterations": calls})
    return merged


def save(rows: list[Row], json_path: Path | None, report_path: Path | None, svg_path: Path | None) -> None:
    """Writes the rows as JSON, the report as HTML and a plot as SVG, where asked for."""
    if json_path:
        json_path.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    if report_path:
        from nearfield.plots import write_report

        write_report(rows, report_path)
    if svg_path:
        from nearfield.plots import plot, plot_protocols

        forced = len({row.get("protocol") for row in rows}) > 1
        svg_path.write_text(plot_protocols(rows) if forced else plot(pairs(rows)))
