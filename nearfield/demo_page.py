"""The demo's report: what programs gain, when, why, whether results are the same; then all figures."""

from __future__ import annotations

import html
import math
import os
from pathlib import Path

from nearfield import __version__, page
from nearfield.demo_figures import (
    PARTS,
    Carried,
    Program,
    Row,
    pairs_of,
    part_ratios,
    ratio_words,
    ratios_of,
    safe_words,
    size_word,
    speed_word,
)
from nearfield.machine import describe_machine
from nearfield.plots import figures_of
from nearfield.summary import geometric_mean


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
    version = f"{rows[0]['host'].upper()} {rows[0]['version']}"
    body = [
        "<h1>What Nearfield does here</h1>",
        f"<p class=faint>Nearfield {__version__}, {html.escape(version)}, {html.escape(describe_machine())}</p>",
        f"<p class=lead>{_summary(rows, cells, counts)}</p>",
        "<h2>What would my program gain?</h2>",
        "<p class=faint>Wall time of a step under Nearfield; the whole bar is the plain host.</p>",
        page.bars((_on(cells, count), _bars(cells, count)) for count in counts),
        _programs(rows, cells),
        "<h2>When?</h2><p class=faint>How many times as fast an operation is, by bytes; buffers are written before each call "
        "and read after it. Red is slower than the plain host.</p>",
        *(_heat(operations, count) for count in sorted({row["ranks"] for row in operations})),
        "<h2>Why?</h2><p class=faint>Calls of the first of two ranks, and how they travelled.</p>",
        page.table(
            ["program", "collectives", "messages", "by", "passed on to the host"],
            [
                [program.title, str(one.collectives), str(one.messages), one.ways or "-", str(one.to_host)]
                for program, one in ((program, carried[program.app]) for program in programs)
            ],
            (0, 3),
        ),
        "<h2>Is it safe?</h2>",
        f"<p>Every run printed what the plain host's did, {html.escape(safe_words(programs))}.</p>",
        "<h2>All figures</h2>",
        *(
            page.folded(
                f"statistics: {program.title}", f"<pre>{html.escape(carried[program.app].text)}</pre>"
            )
            for program in programs
        ),
        page.folded("operations by size", figures_of(operations)),
    ]
    page.write_page(out, "What Nearfield does here", body)


def _summary(rows: list[Row], cells: list[tuple[Program, Row, Row]], counts: list[int]) -> str:
    words = []
    for count in counts:
        ratios = [ours["seconds"] / plain["seconds"] for _, plain, ours in cells if ours["ranks"] == count]
        parts = [part_ratios(rows, ours) for _, _, ours in cells if ours["ranks"] == count]
        means = [geometric_mean(column) if all(column) else None for column in zip(*parts, strict=True)]
        told = [
            f"{1 / mean:.1f} {name}"
            for name, mean in zip(
                ("with the heap alone", "with MPI alone", "by the quickest plain host"), means, strict=True
            )
            if mean
        ]
        words.append(
            f"<b>{1 / geometric_mean(ratios):.1f} times</b> as fast as the same host on {_on(cells, count)}"
            f" ({', '.join(told)})"
        )
    return f"Programs that know nothing of it run {' and '.join(words)}; geometric means of {len(ratios)}."


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


def _milliseconds(row: Row, key: str) -> str:
    lower, upper = (row[f"{key}_{name}"] * 1000 for name in ("lower", "upper"))
    return f"{row[key] * 1000:.2f} <span class=faint>{lower:.2f}-{upper:.2f}</span>"


def _programs(rows: list[Row], cells: list[tuple[Program, Row, Row]]) -> str:
    titles = [
        "program",
        "ranks",
        "plain ms",
        "Nearfield ms",
        "ratio",
        "plain CPU ms",
        "Nearfield CPU ms",
        "ratio",
    ]
    titles += [f"wall, {name}" for name in PARTS]
    titles += ["in MPI, plain", "Nearfield", "calls", "KiB sent"]
    lines = []
    for program, plain, ours in cells:
        lines.append([html.escape(program.title), str(ours["ranks"])])
        for key in ("seconds", "cpu"):
            ratio = ours[key] / plain[key]
            lines[-1] += [_milliseconds(row, key) for row in (plain, ours)]
            lines[-1].append(f"<span class=worse>{ratio:.2f}</span>" if ratio > 1.05 else f"{ratio:.2f}")
        lines[-1] += ratio_words(part_ratios(rows, ours))
        lines[-1] += [f"{row['share']:.0%}" for row in (plain, ours)]
        lines[-1] += [f"{ours['calls']:.0f}", f"{ours['bytes'] / 1024:.0f}"]
    return page.folded("times with quartiles, CPU time of all ranks, calls", page.table(titles, lines))


def _heat(rows: list[Row], ranks: int) -> str:
    ratios = ratios_of(rows, ranks)
    sizes = sorted({size for one in ratios.values() for size in one})

    def cell(one: dict[int, float], size: int) -> str:
        if size not in one:
            return "-"
        if one[size] > 1.05:
            return f"<span class=worse>{speed_word(one[size])}</span>"
        depth = min(1.0, max(0.0, math.log10(1 / one[size]))) * 0.8
        return f"<span class=cell style='background:rgba(var(--good),{depth:.2f})'>{speed_word(one[size])}</span>"

    lines = [[name, *(cell(one, size) for size in sizes)] for name, one in ratios.items()]
    return page.table([f"{ranks} ranks", *map(size_word, sizes)], lines)
