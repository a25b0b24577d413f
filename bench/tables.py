"""Markdown tables out of rows that `nearfield bench --json` has written: python bench/tables.py FILE [best|floor]

best   Nearfield's time by that of the best plain host at that size (medians, the same state)
floor  Nearfield's time by that of bare code in the same run

Files of applications (bench/apps.py) become the picture of the README: python bench/tables.py FILE... > docs/plots/programs.svg
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from nearfield.summary import name_of


def table(rows: list[dict], against: str) -> str:
    """One line per operation and state, one column per size; above 1.05 in bold."""
    mode = "floor" if against == "floor" else "plain"
    base, ours = defaultdict(list), defaultdict(list)
    for row in rows:
        key = (name_of(row), row["state"], row["bytes"])
        if row["mode"] == mode:
            base[key].append(row["median"])
        elif row["mode"] == "nearfield":
            ours[key].append(row["median"])
    sizes = sorted({key[2] for key in ours if key[2]})
    lines = [
        "| operation | state | " + " | ".join(map(short, sizes)) + " |",
        "| --- " * (len(sizes) + 2) + "|",
    ]
    for op in dict.fromkeys(map(name_of, rows)):
        for state in sorted({key[1] for key in ours if key[0] == op}):
            cells = []
            for size in sizes if op != "barrier" else [0]:
                key = (op, state, size)
                reference = min(base[key], default=None) if against == "best" else median(base[key])
                ratio = median(ours[key]) / reference if ours.get(key) and reference else None
                text = "-" if ratio is None else f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"
                cells.append(f"**{text}**" if ratio and ratio > 1.05 else text)
            lines.append(f"| {op} | {state} | " + " | ".join(cells) + " |" + " |" * (len(sizes) - len(cells)))
    return "\n".join(lines)


def median(values: list[float]) -> float | None:
    """The median, None of nothing."""
    return statistics.median(values) if values else None


def short(size: int) -> str:
    """4K, 1M."""
    for unit, shift in (("M", 20), ("K", 10)):
        if size >= 1 << shift:
            return f"{size >> shift}{unit}"
    return str(size)


if __name__ == "__main__":
    files = [word for word in sys.argv[1:] if word not in ("best", "floor")]
    found = [row for file in files for row in json.loads(Path(file).read_text())]
    if all("app" in row for row in found):
        from nearfield.plots import plot_applications

        print(plot_applications(found))
    else:
        print(table(found, "floor" if "floor" in sys.argv else "best"))
