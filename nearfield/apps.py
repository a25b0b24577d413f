"""`nearfield bench --app fft`: a program plain and under Nearfield, in turn.

A row has app, ranks, host, version, mode (plain or nearfield), points, loops, seconds (wall time of a loop), cpu (CPU time of
a loop, all ranks), mpi (of the wall time, rank 0's in MPI), each the median over runs, and runs.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from typing import Any

from rich.console import Console
from rich.progress import track

from nearfield.bench import host_version
from nearfield.hosts import Host, find_hosts, launch_command, launcher_environment, python_of
from nearfield.libraries import ROOT
from nearfield.tables import print_table

Row = dict[str, Any]
FIGURES = ("seconds", "cpu", "mpi")


def run_fft(host: Host, ranks: int, points: int, loops: int, nearfield: bool) -> dict[str, str]:
    """One run of examples/fft3d.py. Returns what it printed, by name. Raises ValueError when it fails."""
    program = [python_of(host), str(ROOT / "examples/fft3d.py"), "--size", str(points), "--loops", str(loops)]
    job = subprocess.run(
        launch_command(host, ranks, program),
        env=launcher_environment(host, nearfield),
        capture_output=True,
        text=True,
        timeout=600,
    )
    if job.returncode:
        raise ValueError(f"the FFT failed on {ranks} ranks of {host.name}:\n{job.stdout}{job.stderr}")
    return dict(line.split(": ", 1) for line in job.stdout.splitlines() if ": " in line)


def compare_fft(ranks: list[int], hosts: list[str], points: list[int], loops: int, runs: int) -> list[Row]:
    """All cells, `runs` times each way in the order A B B A. Raises ValueError where results differ by a bit."""
    found = find_hosts()
    for name in hosts:
        if name not in found:
            raise ValueError(f"there is no host {name}; found: {', '.join(found)}")
    console = Console(stderr=True)
    cells = [(found[name], p, n) for p in ranks for n in points for name in hosts]
    turns = [turn % 4 in (1, 2) for turn in range(2 * runs)]
    rows: list[Row] = []
    for host, p, n in track(cells, "FFT", console=console, disable=not console.is_terminal):
        printed = {mode: [] for mode in (False, True)}
        for nearfield in turns:
            if not console.is_terminal:
                print(
                    f"fft {n}^3, {p} ranks, {host.name}", "Nearfield" * nearfield, file=sys.stderr, flush=True
                )
            printed[nearfield].append(run_fft(host, p, n, loops, nearfield))
        sums = {one["checksum"] for all_runs in printed.values() for one in all_runs}
        if len(sums) > 1:
            raise ValueError(f"the results differ on {p} ranks of {host.name}: {', '.join(sorted(sums))}")
        for nearfield, all_runs in printed.items():
            row = {"app": "fft", "ranks": p, "host": host.name, "version": host_version(host)}
            row |= {"mode": "nearfield" if nearfield else "plain", "points": n, "loops": loops, "runs": runs}
            rows.append(
                row | {key: statistics.median(float(one[key]) for one in all_runs) for key in FIGURES}
            )
    return rows


def show(rows: list[Row]) -> None:
    """Prints each cell with its times in milliseconds and Nearfield's by the host's."""
    plain = {(r["ranks"], r["points"], r["host"]): r for r in rows if r["mode"] == "plain"}
    words = []
    for ours in rows:
        if ours["mode"] == "plain":
            continue
        theirs = plain[ours["ranks"], ours["points"], ours["host"]]
        words.append([str(ours["ranks"]), f"{ours['points']}^3", ours["host"]])
        for key in ("seconds", "cpu"):
            words[-1] += [f"{r[key] * 1000:.2f}" for r in (theirs, ours)] + [f"{ours[key] / theirs[key]:.2f}"]
        words[-1] += [f"{r['mpi'] / r['seconds']:.0%}" for r in (theirs, ours)]
    titles = ("ranks", "points", "host", "wall ms", "with Nearfield", "ratio")
    print_table((*titles, "CPU ms", "with Nearfield", "ratio", "MPI", "with Nearfield"), words)
