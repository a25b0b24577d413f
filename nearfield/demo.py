"""`nearfield demo`: a 3-D FFT plain and under Nearfield, compared to the last bit, then a quick benchmark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from nearfield.bench import parse_sizes, run_bench, show_table
from nearfield.commands import OPERATIONS
from nearfield.hosts import find_hosts, launch_command, launcher_environment
from nearfield.libraries import ROOT


def run_demo(out: Path, quick: bool) -> None:
    """Runs the demo and writes the report to `out`. Raises ValueError when the two results differ."""
    hosts = find_hosts()
    if "mpich" not in hosts:
        raise ValueError("the embedded MPICH is not installed; run `make build`")
    host = hosts["mpich"]
    size, loops = ("48", "3") if quick else ("96", "5")
    console = Console()
    table = Table("ranks", "plain s", "Nearfield s", "speed-up", "results")
    cells = []
    for ranks in (2, 4):
        results = []
        for nearfield in (False, True):
            print(
                f"FFT of {size}^3 on {ranks} ranks, {'Nearfield' if nearfield else 'plain'}", file=sys.stderr
            )
            program = [sys.executable, str(ROOT / "examples/fft3d.py"), "--size", size, "--loops", loops]
            job = subprocess.run(
                launch_command(host, ranks, program),
                env=launcher_environment(host, nearfield),
                capture_output=True,
                text=True,
                timeout=600,
            )
            if job.returncode:
                raise ValueError(f"the FFT failed:\n{job.stdout}{job.stderr}")
            results.append(dict(line.split(": ", 1) for line in job.stdout.splitlines() if ": " in line))
        plain, ours = results
        if plain["checksum"] != ours["checksum"]:
            raise ValueError(
                f"the results differ on {ranks} ranks: {plain['checksum']} and {ours['checksum']}"
            )
        times = float(plain["seconds"]), float(ours["seconds"])
        cells.append(
            [str(ranks), f"{times[0]:.3f}", f"{times[1]:.3f}", f"{times[0] / times[1]:.2f}", "identical"]
        )
        table.add_row(*cells[-1])
    console.print(table)
    # Plain MPICH needs tens of milliseconds a call when ranks outnumber CPUs: 2 ranks show the operations best.
    rows = run_bench(OPERATIONS.split(","), [2], parse_sizes("8:4M", quick=True), ["mpich"], ["warm"], 0.15)
    show_table(rows)
    from nearfield.plots import write_report

    lines = "".join("<tr>" + "".join(f"<td>{cell}" for cell in row) + "</tr>" for row in cells)
    write_report(
        rows,
        out,
        f"<h2>3-D FFT, {size} points a side, {loops} loops</h2><table><tr><th>ranks<th>plain s<th>Nearfield s"
        f"<th>speed-up<th>results to the last bit</tr>{lines}</table>",
    )
    console.print(f"Report: {out}")
