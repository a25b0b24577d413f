"""`nearfield demo`: a 3-D FFT plain and under Nearfield, compared to the last bit, then a quick benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from nearfield.apps import compare
from nearfield.bench import parse_sizes, run_bench
from nearfield.hosts import find_hosts
from nearfield.operations import OPERATIONS
from nearfield.summary import show_summary


def run_demo(out: Path, quick: bool) -> None:
    """Runs the demo and writes the report to `out`. Raises ValueError when the two results differ."""
    if "mpich" not in find_hosts():
        raise ValueError("the embedded MPICH is not installed; run `make build`")
    size, loops = (48, 3) if quick else (96, 5)
    console = Console()
    table = Table("ranks", "plain s", "Nearfield s", "speed-up", "results")
    cells = []
    for plain, ours in _pairs(compare("fft", [2, 4], ["mpich"], [size], loops, 1)):
        times = plain["seconds"], ours["seconds"]
        cells.append(
            [
                str(ours["ranks"]),
                f"{times[0]:.3f}",
                f"{times[1]:.3f}",
                f"{times[0] / times[1]:.2f}",
                "identical",
            ]
        )
        table.add_row(*cells[-1])
    console.print(table)
    # Plain MPICH needs tens of milliseconds a call when ranks outnumber CPUs: 2 ranks show the operations best.
    rows = run_bench(OPERATIONS.split(","), [2], parse_sizes("8:4M", quick=True), ["mpich"], ["used"], 0.15)
    show_summary(rows)
    from nearfield.plots import write_report

    lines = "".join("<tr>" + "".join(f"<td>{cell}" for cell in row) + "</tr>" for row in cells)
    write_report(
        rows,
        out,
        f"<h2>3-D FFT, {size} points a side, {loops} loops</h2><table><tr><th>ranks<th>plain s<th>Nearfield s"
        f"<th>speed-up<th>results to the last bit</tr>{lines}</table>",
    )
    console.print(f"Report: {out}")


def _pairs(rows: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Plain and Nearfield rows of the same number of ranks."""
    return list(zip(rows[::2], rows[1::2], strict=True))
