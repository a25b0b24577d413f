"""Plots as SVG, and the report of a benchmark."""

from __future__ import annotations

import html
import io
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

from nearfield import __version__  # noqa: E402
from nearfield.machine import describe_machine  # noqa: E402
from nearfield.page import folded, table, write_page  # noqa: E402
from nearfield.summary import name_of, pairs  # noqa: E402


def write_report(rows: list[dict[str, Any]], path: Path) -> None:
    """Writes the report of what `nearfield bench` has measured."""
    machine = f"<p class=faint>{html.escape(describe_machine())}</p>"
    write_page(path, "Nearfield", [f"<h1>Nearfield {__version__}</h1>", machine, figures_of(rows)])


def figures_of(rows: list[dict[str, Any]]) -> str:
    """Plots and tables of all cells, as HTML."""
    body = []
    cells = pairs(rows)
    for group in sorted({_group(row) for row in rows}):
        chosen = [cell for cell in cells if _group(cell[0]) == group]
        if chosen:
            ranks, host, buffers, beside = group
            company = f", {beside} beside" if beside else ""
            version = html.escape(chosen[0][0]["version"])
            body.append(
                f"<h2>{host}, {ranks} ranks, {buffers} buffers{company}</h2><p>{version}</p>"
                f"<figure>{plot(chosen)}</figure>{_table(chosen)}"
            )
    return "\n".join(body)


def _group(row: dict[str, Any]) -> tuple[int, str, str, str]:
    return row["ranks"], row["host"], row["buffers"], row.get("beside", "")


def plot(cells: list) -> str:
    """An SVG of time against size and ratio against size, one panel per operation, out of `pairs(rows)`."""
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
        states = sorted({cell[0]["state"] for cell in cells if name_of(cell[0]) == operation})
        for state, dash in zip(states, ("-", "--", ":"), strict=False):
            chosen = [cell for cell in cells if (name_of(cell[0]), cell[0]["state"]) == (operation, state)]
            sizes = [plain["bytes"] for plain, _ in chosen]
            marker = "o" if len(set(sizes)) == 1 else None  # no line
            style = {"linestyle": dash, "marker": marker}
            times.plot(
                sizes, [p["median"] for p, _ in chosen], color="#d95f02", label=f"host, {state}", **style
            )
            times.plot(
                sizes, [n["median"] for _, n in chosen], color="#1b6ca8", label=f"Nearfield, {state}", **style
            )
            ratios.plot(sizes, [n["median"] / p["median"] for p, n in chosen], color="#1b6ca8", **style)
            low = [n["lower"] / p["upper"] for p, n in chosen]
            high = [n["upper"] / p["lower"] for p, n in chosen]
            ratios.fill_between(sizes, low, high, color="#1b6ca8", alpha=0.15)
        times.set_title(operation, fontsize=10 if len(operation) < 20 else 7)
        times.set_ylabel("microseconds", fontsize=8)
        ratios.set_ylabel("Nearfield / host", fontsize=8)
        ratios.axhline(1, color="#888", linewidth=0.8)
        for axis in (times, ratios):
            axis.set_visible(True)
            axis.set_xscale("log", base=2)
            axis.set_yscale("log")
            axis.tick_params(labelsize=7)
        times.legend(fontsize=6)
    return _svg(figure)


def _svg(figure) -> str:
    """The figure as an SVG element, closed."""
    figure.tight_layout()
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg")
    plt.close(figure)
    svg = buffer.getvalue()
    return svg[svg.index("<svg") :]


def plot_protocols(rows: list[dict[str, Any]]) -> str:
    """An SVG of time per message against size, one panel per operation and state, one line per protocol."""
    panels = sorted({(row["op"], row["state"]) for row in rows})
    figure, axes = plt.subplots(1, len(panels), figsize=(4.6 * len(panels), 4), squeeze=False)
    for axis, (operation, state) in zip(axes[0], panels, strict=True):
        chosen = [row for row in rows if (row["op"], row["state"]) == (operation, state)]
        for protocol in dict.fromkeys(row["protocol"] for row in chosen):
            line = [row for row in chosen if row["protocol"] == protocol and row["mode"] == "nearfield"]
            style = {"color": "#111", "linewidth": 2} if protocol == "auto" else {}
            axis.plot(
                [row["bytes"] for row in line], [row["median"] for row in line], label=protocol, **style
            )
        host = [row for row in chosen if row["protocol"] == "auto" and row["mode"] == "plain"]
        axis.plot([r["bytes"] for r in host], [r["median"] for r in host], ":", color="#888", label="host")
        axis.set_title(f"{operation}, {state}", fontsize=10)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xlabel("bytes", fontsize=8)
        axis.set_ylabel("microseconds per message", fontsize=8)
        axis.tick_params(labelsize=7)
        axis.legend(fontsize=6)
    return _svg(figure)


def _table(cells: list) -> str:
    titles = ["operation", "bytes", "state", "host us", "Nearfield us", "ratio", "spread", "algorithm"]
    lines = []
    for plain, ours in cells:
        ratio = f"{ours['median'] / plain['median']:.2f}"
        lines.append(
            [
                name_of(ours),
                str(ours["bytes"]),
                ours["state"],
                f"{plain['median']:.2f}",
                f"{ours['median']:.2f}",
            ]
        )
        lines[-1].append(f"<span class=worse>{ratio}</span>" if float(ratio) > 1.05 else ratio)
        lines[-1].append(f"{ours['lower'] / plain['upper']:.2f}-{ours['upper'] / plain['lower']:.2f}")
        lines[-1].append(ours["algorithm"])
    return folded("All figures", table(titles, lines))
