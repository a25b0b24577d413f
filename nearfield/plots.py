"""Plots as SVG, and the report of a benchmark."""

from __future__ import annotations

import datetime
import io
import itertools
from pathlib import Path
from typing import Any

import matplotlib
from markupsafe import Markup

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

from nearfield.machine import describe_machine  # noqa: E402
from nearfield.operations import OWN_LOOP  # noqa: E402
from nearfield.page import Table, ratio_cell, write_page  # noqa: E402
from nearfield.summary import geometric_mean, name_of, pairs, time_of  # noqa: E402

PLAIN, OURS, INK, FAINT = "#d95f02", "#1b6ca8", "#010101", "#888888"
# What the page's style has for them, so that plots are as legible on dark pages.
OF_PAGE = {PLAIN: "var(--plain)", OURS: "var(--ours)", INK: "currentColor", FAINT: "var(--faint)"}
ON_PAGE = {
    name: INK for name in ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
}
ON_PAGE |= {"legend.facecolor": "none", "legend.framealpha": 0, "svg.fonttype": "none"}


def write_report(rows: list[dict[str, Any]], path: Path) -> None:
    """Writes the report of what `nearfield bench` has measured."""
    cells = pairs(rows)
    hosts = list(dict.fromkeys(row["host"] for row in rows))
    operations = list(dict.fromkeys(name_of(row) for row in rows))
    few = ", ".join(operations[:4]) + f" and {len(operations) - 4} more" * (len(operations) > 4)
    mean = ""
    if cells:
        ratio = geometric_mean(time_of(ours) / time_of(plain) for plain, ours in cells)
        mean = f"Under Nearfield a call takes {ratio:.2f} of the host's time, in the geometric mean of {len(cells)} cells."
    write_page(
        path,
        "bench.html",
        title=f"{few}: Nearfield beside {', '.join(hosts)}",
        mean=mean,
        machine=describe_machine(),
        date=today(),
        groups=figures_of(rows),
    )


def today() -> str:
    """The date that a page bears."""
    return datetime.date.today().isoformat()


def figures_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Plots and tables of all cells, for parts.html: title, version, panels (name and SVG) and table of each group."""
    groups = []
    cells = pairs(rows)
    for group in sorted({_group(row) for row in rows}):
        chosen = [cell for cell in cells if _group(cell[0]) == group]
        if chosen:
            ranks, host, buffers, beside, loop = group
            conditions = (f", {beside} beside" if beside else "") + (
                f", loop {loop}" if loop != OWN_LOOP else ""
            )
            operations = dict.fromkeys(name_of(plain) for plain, _ in chosen if plain["bytes"])
            of = {name: [cell for cell in chosen if name_of(cell[0]) == name] for name in operations}
            groups.append(
                {
                    "title": f"{host}, {ranks} ranks, {buffers} buffers{conditions}",
                    "version": chosen[0][0]["version"],
                    "panels": [(name, _on_page(of[name])) for name in operations],
                    "table": _table(chosen),
                }
            )
    return groups


def _group(row: dict[str, Any]) -> tuple[int, str, str, str, str]:
    return row["ranks"], row["host"], row["buffers"], row.get("beside", ""), row.get("loop", OWN_LOOP)


def _on_page(cells: list) -> Markup:
    """The plot of an operation, in the colours of the page."""
    with matplotlib.rc_context(ON_PAGE):
        svg = plot(cells, titles=False)
    for colour, name in OF_PAGE.items():
        svg = svg.replace(colour, name)
    return Markup(svg)


def plot(cells: list, titles: bool = True) -> str:
    """An SVG of time against size and ratio against size, one panel per operation, out of `pairs(rows)`; without `titles` the background
    is left to a page as well."""
    cells = [cell for cell in cells if cell[0]["bytes"]]
    operations = list(dict.fromkeys(name_of(cell[0]) for cell in cells))
    if not operations:
        return ""
    columns = min(4, len(operations))
    lines = -(-len(operations) // columns)
    figure, axes = plt.subplots(2 * lines, columns, figsize=(3.6 * columns, 4.6 * lines), squeeze=False)
    for axis in axes.flat:
        axis.set_visible(False)
    for index, operation in enumerate(operations):
        times, ratios = (
            axes[2 * (index // columns)][index % columns],
            axes[2 * (index // columns) + 1][index % columns],
        )
        of_it = [plain for plain, _ in cells if name_of(plain) == operation]
        states = dict.fromkeys(row["state"] for row in sorted(of_it, key=lambda row: row.get("line_ns", 0)))
        for state, dash in zip(states, itertools.cycle(("-", "--", ":", "-."))):
            chosen = [cell for cell in cells if (name_of(cell[0]), cell[0]["state"]) == (operation, state)]
            sizes = [plain["bytes"] for plain, _ in chosen]
            marker = "o" if len(set(sizes)) == 1 else None  # no line
            style = {"linestyle": dash, "marker": marker}
            times.plot(sizes, [time_of(p) for p, _ in chosen], color=PLAIN, label=f"host, {state}", **style)
            times.plot(
                sizes, [time_of(n) for _, n in chosen], color=OURS, label=f"Nearfield, {state}", **style
            )
            ratios.plot(sizes, [time_of(n) / time_of(p) for p, n in chosen], color=OURS, **style)
            low = [n["lower"] / p["upper"] for p, n in chosen]
            high = [n["upper"] / p["lower"] for p, n in chosen]
            ratios.fill_between(sizes, low, high, color=OURS, alpha=0.15)
        if titles:
            times.set_title(operation, fontsize=10 if len(operation) < 20 else 7)
        times.set_ylabel("microseconds", fontsize=8)
        ratios.set_ylabel("Nearfield / host", fontsize=8)
        ratios.axhline(1, color=FAINT, linewidth=1.2)
        ratios.set_xlabel("bytes", fontsize=8)
        for axis in (times, ratios):
            axis.set_visible(True)
            axis.set_xscale("log", base=2)
            axis.set_yscale("log")
            axis.tick_params(labelsize=7)
        times.legend(fontsize=6)
    return svg_of(figure, transparent=not titles)


def svg_of(figure, transparent: bool = False) -> str:
    """The figure as an SVG element, closed."""
    figure.tight_layout()
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=transparent)
    plt.close(figure)
    svg = buffer.getvalue()
    return svg[svg.index("<svg") :]


def plot_protocols(rows: list[dict[str, Any]]) -> str:
    """An SVG of time per message against size, one panel per operation and state, one line per protocol."""
    panels = sorted({(row["op"], row["state"]) for row in rows})
    figure, axes = plt.subplots(1, len(panels), figsize=(4.6 * len(panels), 4), squeeze=False)
    for axis, (operation, state) in zip(axes[0], panels):
        chosen = [row for row in rows if (row["op"], row["state"]) == (operation, state)]
        for protocol in dict.fromkeys(row["protocol"] for row in chosen):
            line = [row for row in chosen if row["protocol"] == protocol and row["mode"] == "nearfield"]
            style = {"color": "#111", "linewidth": 2} if protocol == "auto" else {}
            axis.plot([row["bytes"] for row in line], [time_of(row) for row in line], label=protocol, **style)
        host = [row for row in chosen if row["protocol"] == "auto" and row["mode"] == "plain"]
        axis.plot([r["bytes"] for r in host], [time_of(r) for r in host], ":", color=FAINT, label="host")
        axis.set_title(f"{operation}, {state}", fontsize=10)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xlabel("bytes", fontsize=8)
        axis.set_ylabel("microseconds per message", fontsize=8)
        axis.tick_params(labelsize=7)
        axis.legend(fontsize=6)
    return svg_of(figure)


def _table(cells: list) -> Table:
    titles = ["operation", "bytes", "state", "host us", "Nearfield us", "ratio", "spread", "algorithm"]
    lines = [
        [
            name_of(ours),
            str(ours["bytes"]),
            ours["state"],
            f"{time_of(plain):.2f}",
            f"{time_of(ours):.2f}",
            ratio_cell(time_of(ours) / time_of(plain)),
            f"{ours['lower'] / plain['upper']:.2f}-{ours['upper'] / plain['lower']:.2f}",
            ours["algorithm"],
        ]
        for plain, ours in cells
    ]
    return Table(titles, lines)
