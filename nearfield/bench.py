"""`nearfield bench`: runs the worker under each host and collects its rows.

A row is a dictionary with the keys op, bytes, ranks, host, version, machine, mode (plain, nearfield or floor), algorithm,
buffers, state (nearfield/states.py), line_ns (ns of a cache line, one way, between the first two ranks), heap, protocol, loop (own, or
the name of another benchmark: bench/standard_loops.hpp), short (0, or the calls after which a loop begins anew), beside (number and kind
of busy processes; "": none), median, mean, lower, upper (microseconds) and iterations. Rows over nodes also have nodes and the counts of
bench/internode_traffic.py. Rows of one-sided operations also have window and target (bench/one_sided.hpp).

With `used` and `modified` buffers these are microseconds of the call alone. The time in which a rank writes its send buffer and
reads its receive buffer is measured on buffers in its own caches; the longest of these times is subtracted from the slowest rank's
time (in a ping-pong both are, since the ranks work one after the other). The time that a rank waits for lines which the call has left
in other caches is not subtracted. At least a nanosecond remains.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from nearfield.beside import ALONE, Beside
from nearfield.hosts import Host, find_hosts, launch_command, launcher_environment
from nearfield.libraries import program
from nearfield.machine import describe_machine
from nearfield.operations import (
    COLLECTIVES,
    LOOPS,
    MEASURED,
    NONBLOCKING,
    ONE_SIDED,
    OWN_LOOP,
    PROTOCOLS,
    TARGETS,
    WINDOWS,
    cells_of_job,
    sizes_of,
)
from nearfield.progress import Progress
from nearfield.states import joined, rows_of_blocks
from nearfield.summary import pairs
from nearfield.values import check_words

Row = dict[str, Any]


# What the program does with its buffers around each call (bench/own_work.hpp).
BUFFERS = ("used", "modified", "warm", "cold")
# Peers remember how messages went best; only a new job begins afresh (bench/loops.hpp).
JOBS_OF_LOOPS = 5
SILENCE = 30.0  # seconds, beside those measured, after which one-sided cells that give no row are given up


class Bed(Protocol):
    """Runs jobs elsewhere than on this machine as it is: bench/nodes.py has one."""

    nodes: int

    def run(self, host: Host, ranks: int, program: list[str], env: dict[str, str], limit: float) -> Any:
        """Its returncode, whether it timed_out, out (a text of each rank), and text, which is everything."""


@dataclass(frozen=True)
class Job:
    """The operation, ranks, protocol and host that one job measures at all sizes; window and target if the operation is one-sided."""

    op: str
    ranks: int
    protocol: str
    host: Host
    window: str = ""
    target: str = ""

    def __str__(self) -> str:
        words = [self.op, f"{self.ranks} ranks", self.host.name]
        words += [f"window {self.window}", f"target {self.target}"] if self.window else []
        return ", ".join(words + [self.protocol] * (self.protocol != "auto"))


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
    short: int = 0,
    bed: Bed | None = None,
    windows: Sequence[str] = ("allocate",),
    targets: Sequence[str] = ("own",),
    failures: list[str] | None = None,
    beside: Beside = ALONE,
    loops: Sequence[str] = ("own",),
    limit: float | None = None,
    silent: bool = False,
) -> list[Row]:
    """Runs one job per operation, rank count, protocol and host; for one-sided operations also per window and target. Jobs of
    different hosts alternate. Returns all rows.

    `buffers` are some of BUFFERS; `protocols` are forced one after the other on messages (NEARFIELD_PROTOCOL).
    `short`: times loops of so many calls, each on a new communicator and from its first call on; 0: times calls in the long run.
    `loops`: how calls follow each other, some of LOOPS; loops of other benchmarks do not touch buffers. `bed`: where jobs run; None: on
    this machine as it is. `failures`: a list to which the text of a failed job is added; then its rows so far count and the other jobs
    run. `beside`: busy processes that run during a job. `limit`: seconds after which a job counts as failed; by default they are
    estimated. `silent`: shows no progress.
    Raises ValueError for hosts that are not installed, unknown buffers, windows and targets, combinations that are not
    measured for one-sided operations, and jobs that fail.
    """
    found = find_hosts()
    ways = protocols or ["auto"]
    for what, asked, there in (
        ("operation", operations, MEASURED),
        ("host", hosts, found),
        ("kind of buffers", buffers, BUFFERS),
        ("kind of window", windows, WINDOWS),
        ("target", targets, TARGETS),
        ("protocol", ways, PROTOCOLS),
        ("loop", loops, LOOPS),
    ):
        check_words(asked, there, what)
    standard = any(name != OWN_LOOP for name in loops)
    if set(ONE_SIDED) & set(operations) and (short or standard or "cold" in buffers):
        raise ValueError(
            "one-sided operations are measured by `--loop own` only, without --short and without cold buffers"
        )
    if short and standard:
        raise ValueError("--short goes with --loop own only: the loops of IMB and OSU have no short form")
    places = {
        op: [(w, t) for w in windows for t in targets] if op in ONE_SIDED else [("", "")] for op in operations
    }
    jobs = [
        Job(op, n, way, found[name], *place)
        for op, n, way in itertools.product(operations, ranks, ways)
        for place in places[op]
        for name in hosts
    ]
    measured: list[Row] = []
    with Progress(sum(cells_of_job(job.op, sizes, buffers, loops) for job in jobs), silent) as progress:
        done = 0
        for job in jobs:
            progress.begin(str(job))
            seen: set[tuple[int, str, str]] = set()

            def arrived(row: Row, seen=seen, before=done) -> None:
                seen.add((row["bytes"], row["buffers"], row["loop"]))
                progress.at(before + len(seen), f", {row['bytes']} B {row['buffers']}")

            words = [*(["floor"] if floor else []), *([f"short={short}"] if short else [])]
            words += [f"loop={name}" for name in loops]
            words += ["beside"] if beside.count else []
            again = JOBS_OF_LOOPS if short and job.op not in COLLECTIVES + NONBLOCKING else 1
            of_jobs: list[list[Row]] = [[] for _ in range(again)]
            for found_rows in of_jobs:
                with beside.running():
                    why = _run_job(
                        *(
                            job,
                            sizes,
                            buffers,
                            seconds,
                            algorithm,
                            heap,
                            words,
                            found_rows,
                            arrived,
                            bed,
                            limit,
                        )
                    )
                for row in found_rows:
                    row["beside"] = str(beside)
                if why and failures is None:
                    raise ValueError(why)
                if why:
                    failures.append(why)
            measured += joined(of_jobs)
            done += cells_of_job(job.op, sizes, buffers, loops)
            progress.at(done)
    return rows_of_blocks(measured)


def _run_job(
    job: Job,
    sizes: list[int],
    buffers: list[str],
    seconds: float,
    algorithm: str,
    heap: str,
    words: list[str],
    rows: list[Row],
    arrived: Callable[[Row], None],
    bed: Bed | None,
    most: float | None,
) -> str:
    """Runs one job; appends each row to `rows` and hands it to `arrived` as it comes. Returns why the job failed, or ""."""
    host, one_sided = job.host, job.op in ONE_SIDED
    lengths = sizes_of(job.op, sizes)
    arguments = [job.op, ",".join(map(str, lengths)), ",".join(buffers), str(seconds)]
    if one_sided:
        words = [*words, f"window={job.window}", f"target={job.target}"]
    if algorithm or words:
        arguments += [algorithm, ",".join(words)]
    worker = [str(program(f"nearfield-bench-{host.abi}")), *arguments]
    # A plain host may need a second for a call when ranks outnumber CPUs.
    loops = [word.removeprefix("loop=") for word in words if word.startswith("loop=")]
    limit = most or 120 + cells_of_job(job.op, sizes, buffers, loops) * (seconds * 4 + 60)
    origin = {"host": host.name, "version": host_version(host), "machine": describe_machine()}
    origin |= {"heap": heap, "protocol": job.protocol}
    env = launcher_environment(host, nearfield=True, heap=heap) | {"NEARFIELD_PROTOCOL": job.protocol}

    def take(line: str) -> bool:
        if line.startswith("{"):
            rows.append(origin | json.loads(line))
            arrived(rows[-1])
        return line.startswith("{")

    if bed:
        origin |= {"nodes": bed.nodes}
        ended = bed.run(host, job.ranks, worker, env, limit)
        for line in ended.out[0].splitlines():
            take(line)
        if ended.returncode or ended.timed_out:
            return str(failed(job.op, job.ranks, host, limit if ended.timed_out else 0, ended.text))
        return ""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            launch_command(host, job.ranks, worker),
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        # Hosts are known to hang in one-sided operations: what has given no row for so long will give none.
        watch = Watch(process, SILENCE + 4 * seconds if one_sided else limit)
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if watch.late:  # it has been given up, and takes a moment to end
                    continue
                if take(line) and one_sided:
                    watch.begin_anew()
            process.wait()
        finally:
            watch.end()
            stop(process)
        if not process.returncode and not watch.late:
            return ""
        errors.seek(0)
        text = str(failed(job.op, job.ranks, host, watch.limit if watch.late else 0, errors.read()))
        return f"{job}, after {_last(rows)}: {text}" if one_sided else text


def _last(rows: list[Row]) -> str:
    """Returns the name of the cell that was measured last."""
    return f"{rows[-1]['bytes']} bytes of {rows[-1]['buffers']} buffers" if rows else "no row"


class Watch:
    """Stops a job that is silent for longer than `limit` seconds; `late` says whether that has happened."""

    def __init__(self, process: subprocess.Popen, limit: float) -> None:
        self.process, self.limit, self.late = process, limit, False
        self.timer = self._timer()

    def _timer(self) -> threading.Timer:
        timer = threading.Timer(self.limit, self._stop)
        timer.start()
        return timer

    def _stop(self) -> None:
        self.late = True
        stop(self.process)

    def begin_anew(self) -> None:
        """Restarts the time: the job has printed something."""
        self.end()
        self.timer = self._timer()

    def end(self) -> None:
        """Ends watching: the job is not stopped any more."""
        self.timer.cancel()


def failed(op: str, ranks: int, host: Host, limit: float, text: str) -> ValueError:
    """Returns the exception for a job that failed (`limit` 0), or did not end within `limit` seconds."""
    why = f"did not end within {limit:.0f} s" if limit else "failed"
    return ValueError(f"{op} on {ranks} ranks of {host.name} {why}:\n{text[-2000:]}")


def stop(job: subprocess.Popen) -> None:
    """Ends a job that still runs: terminates the launcher, which ends its ranks; if it does not end, kills its process group."""
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
    """The version as the host prints it, one line."""
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


def save(rows: list[Row], json_path: Path | None, report_path: Path | None, svg_path: Path | None) -> None:
    """Writes the rows as JSON, the report as HTML and a plot as SVG, where asked for."""
    if json_path:
        json_path.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    if report_path:
        from nearfield.plots import write_report

        write_report(rows, report_path)
    if svg_path:
        from nearfield.plots import plot, plot_protocols

        text = plot_protocols(rows) if len({row.get("protocol") for row in rows}) > 1 else plot(pairs(rows))
        svg_path.write_text(text)
