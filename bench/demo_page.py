"""The demo's report: what programs gain, when, why, whether results are the same; then all figures (bench/demo.html)."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from bench.demo_figures import (
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
from nearfield import page
from nearfield.machine import describe_machine
from nearfield.page import Cell, Table, ratio_cell
from nearfield.plots import figures_of, today
from nearfield.summary import geometric_mean, size_word, speed_word


def write_demo(
    out: Path,
    rows: list[Row],
    operations: list[Row],
    programs: tuple[Program, ...],
    carried: dict[str, Carried],
) -> None:
    """Writes the page to `out`, of what `compare` and `run_bench` gave."""
    cells = pairs_of(rows, programs)
    counts = sorted({ours["ranks"] for _, _, ours in cells})
    page.write_page(
        out,
        "demo.html",
        host=f"{rows[0]['host'].upper()} {rows[0]['version']}",
        machine=describe_machine(),
        date=today(),
        means=[_means(rows, cells, count) for count in counts],
        programs=len(programs),
        bars=[(_on(cells, count), _bars(cells, count)) for count in counts],
        times=_times(rows, cells),
        heats=[_heat(operations, count) for count in sorted({row["ranks"] for row in operations})],
        causes=_causes(programs, carried),
        safe=safe_words(programs),
        statistics=[(program.title, carried[program.app].text) for program in programs],
        groups=figures_of(operations),
    )


def _means(rows: list[Row], cells: list[tuple[Program, Row, Row]], count: int) -> dict[str, Any]:
    ratios = [ours["seconds"] / plain["seconds"] for _, plain, ours in cells if ours["ranks"] == count]
    parts = [part_ratios(rows, ours) for _, _, ours in cells if ours["ranks"] == count]
    means = [geometric_mean(column) if all(column) else None for column in zip(*parts, strict=False)]
    names = ("with the heap alone", "with MPI alone", "by the quickest plain host")
    told = [f"{1 / mean:.1f} {name}" for name, mean in zip(names, means, strict=False) if mean]
    times = f"{1 / geometric_mean(ratios):.1f}"
    return {"times": times, "where": _on(cells, count), "parts": ", ".join(told)}


def _causes(programs: tuple[Program, ...], carried: dict[str, Carried]) -> Table:
    lines = [
        [program.title, str(one.collectives), str(one.messages), one.ways or "-", str(one.to_host)]
        for program, one in ((program, carried[program.app]) for program in programs)
    ]
    return Table(["program", "collectives", "messages", "by", "passed on to the host"], lines, (0, 3))


def _on(cells: list[tuple[Program, Row, Row]], count: int) -> str:
    pinned = next(ours["pinned"] for _, _, ours in cells if ours["ranks"] == count)
    cpus = len(os.sched_getaffinity(0))
    return f"{count} ranks with a CPU each" if pinned else f"{count} ranks on {cpus} CPUs"


def _bars(cells: list[tuple[Program, Row, Row]], count: int) -> list[tuple[str, float, str]]:
    return [
        (
            program.title,
            ours["seconds"] / plain["seconds"],
            f"{plain['seconds'] / ours['seconds']:.2f} times as fast",
        )
        for program, plain, ours in cells
        if ours["ranks"] == count
    ]


def _milliseconds(row: Row, key: str) -> Cell:
    lower, upper = (row[f"{key}_{name}"] * 1000 for name in ("lower", "upper"))
    return Cell(f"{row[key] * 1000:.2f}", spread=f"{lower:.2f}-{upper:.2f}")


def _times(rows: list[Row], cells: list[tuple[Program, Row, Row]]) -> Table:
    titles = ["program", "ranks", "plain ms", "Nearfield ms", "ratio"]
    titles += ["plain CPU ms", "Nearfield CPU ms", "ratio of CPU"]
    titles += [f"wall, {name}" for name in PARTS]
    titles += ["in MPI, plain", "in MPI, Nearfield", "calls", "KiB sent"]
    lines: list[list[str | Cell]] = []
    for program, plain, ours in cells:
        lines.append([program.title, str(ours["ranks"])])
        for key in ("seconds", "cpu"):
            lines[-1] += [_milliseconds(row, key) for row in (plain, ours)]
            lines[-1].append(ratio_cell(ours[key] / plain[key]))
        lines[-1] += ratio_words(part_ratios(rows, ours))
        lines[-1] += [f"{row['share']:.0%}" for row in (plain, ours)]
        lines[-1] += [f"{ours['calls']:.0f}", f"{ours['bytes'] / 1024:.0f}"]
    return Table(titles, lines)


def _heat(rows: list[Row], ranks: int) -> Table:
    """How many times as fast, by operation and size; the faster the darker."""
    ratios = ratios_of(rows, ranks)
    sizes = sorted({size for one in ratios.values() for size in one})

    def cell(one: dict[int, float], size: int) -> str | Cell:
        if size not in one:
            return "-"
        if one[size] > 1.05:
            return Cell(speed_word(one[size]), "worse")
        return Cell(speed_word(one[size]), depth=min(1.0, max(0.0, math.log10(1 / one[size]))) * 0.8)

    lines = [[name, *(cell(one, size) for size in sizes)] for name, one in ratios.items()]
    return Table([f"{ranks} ranks", *map(size_word, sizes)], lines)
