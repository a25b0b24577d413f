"""The page of one survey or several (nearfield/templates/survey.html says how it looks)."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from nearfield import page
from nearfield.page import Cell, Table
from nearfield.places import RELATIONS, Place, relation
from nearfield.summary import cells_of, geometric_mean, size_word, speed_word

Record = dict[str, Any]
WITHIN = 1.1  # of the fastest: what a choice may take
MOST_SHOWN = 40  # choices that cost more


def write_survey(surveys: Sequence[Record], path: Path) -> None:
    """Writes the page of what archive.read gave to `path`. Raises ValueError for what is damaged."""
    try:
        parts = [_survey(survey) for survey in surveys]
        compared = _compared(surveys) if len(surveys) > 1 else None
    except (AttributeError, KeyError, TypeError, IndexError, statistics.StatisticsError) as error:
        raise ValueError(f"an archive is damaged: {type(error).__name__} {error}") from None
    page.write_page(path, "survey.html", surveys=parts, compared=compared, most=MOST_SHOWN)


def _survey(survey: Record) -> Record:
    machine, places, steps = survey["machine"], survey["places"], survey["steps"]
    cores, caches, packages = (len({one[key] for one in places}) for key in RELATIONS[:-1])
    about = f"{machine['cpus']} CPUs, {cores} cores, {caches} last-level caches, {packages} packages"
    hosts = ", ".join(f"{name} ({version})" for name, version in survey["hosts"].items())
    return {
        "title": machine["model"],
        "about": f"{about}; {', '.join(machine['caches'])}; Linux {machine['kernel']}"
        + ", virtual" * bool(machine["virtual"]),
        "measured": f"Nearfield {survey['version']}, {survey['used'] / 60:.2g} of {survey['minutes']:g} minutes; {hosts}",
        "lead": _lead(survey),
        "lines": _lines(survey),
        "figures": _figures(steps),
        "by_host": _by_host(steps),
        "wrong": _wrong(steps),
        "choices": len(_cells(steps)),
        "failed": [f"{name}: {step['failed']}" for name, step in steps.items() if "failed" in step],
        "missing": survey["missing"],
        "without_workers": survey["without_workers"],
    }


def _of_kind(steps: dict[str, Record], kind: str) -> list[Record]:
    return [step for step in steps.values() if step["kind"] == kind]


def _cells(steps: dict[str, Record]) -> list[Record]:
    """Cells of nearfield/choices.py, each with its placement."""
    return [
        {"placement": step["placement"], **cell}
        for step in _of_kind(steps, "choices")
        for cell in step.get("rows", [])
    ]


def _ratios(steps: dict[str, Record]) -> dict[tuple[str, str, int], float]:
    """Nearfield's time by the best plain host's, by placement, operation and bytes: the mean over states of the machine."""
    groups: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for step in _of_kind(steps, "calls"):
        for row in step.get("rows", []):
            by = row.get("protocol", "auto")
            op = row["op"] if by == "auto" else f"{row['op']} by {by}"
            groups[step["placement"], op, row["state"]].append(row)
    found: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for (placement, op, _), rows in groups.items():
        for cell in cells_of(rows):
            if cell["ratio"]:
                found[placement, op, cell["bytes"]].append(cell["ratio"])
    return {key: geometric_mean(ratios) for key, ratios in found.items()}


def _of_collectives(steps: dict[str, Record]) -> list[float]:
    return [ratio for (_, op, _), ratio in _ratios(steps).items() if not op.startswith("latency")]


def _lead(survey: Record) -> list[str]:
    ratios, cells = _of_collectives(survey["steps"]), _cells(survey["steps"])
    said = []
    if ratios:
        slower = sum(ratio > 1.05 for ratio in ratios)
        said.append(
            f"Under Nearfield a collective takes {geometric_mean(ratios):.2f} of the best plain MPI's time, in the geometric"
            f" mean of {len(ratios)} cells; {slower} of them take more than 1.05 of it."
        )
    if cells:
        for who, key in (("What calls chose", "ratio"), ("What the model alone would choose", "model_ratio")):
            part = sum(cell[key] <= WITHIN for cell in cells) / len(cells)
            said.append(
                f"{who} takes at most {WITHIN:g} of the fastest algorithm's time in {part:.0%} of"
                f" {len(cells)} cells."
            )
    return said or ["No calls were measured."]


def _line_groups(survey: Record) -> dict[str, list[float]]:
    places = {one["cpu"]: Place(**one) for one in survey["places"]}
    groups: dict[str, list[float]] = {name: [] for name in RELATIONS}
    for row in _line_rows(survey):
        groups[relation(places[row["first"]], places[row["second"]])].append(row["ns"])
    return groups


def _line_rows(survey: Record) -> list[Record]:
    return [
        row for step in _of_kind(survey["steps"], "lines") for row in step.get("rows", []) if row["ns"] > 0
    ]


def _lines(survey: Record) -> Table:
    rows = [
        [f"one {name}", str(len(found)), *(f"{of(found):.0f}" for of in (min, statistics.median, max))]
        for name, found in _line_groups(survey).items()
        if found
    ]
    return Table(["what two CPUs have in common", "pairs", "least ns", "median", "most"], rows)


def _figures(steps: dict[str, Record]) -> Table | None:
    found = [row for step in _of_kind(steps, "machine") for row in step.get("found", {}).get("figures", [])]
    used = [row for row in found if row["value"] and "simulator" not in row["meaning"]]
    rows = [[row["name"], f"{row['value']:.4g}", row["meaning"]] for row in used]
    return Table(["figure", "value", "what it is"], rows, (0, 2)) if rows else None


def _by_host(steps: dict[str, Record]) -> list[Table]:
    """How many times as fast, a table for each placement."""
    ratios = _ratios(steps)
    tables = []
    for placement in dict.fromkeys(key[0] for key in ratios):
        here = {key[1:]: ratio for key, ratio in ratios.items() if key[0] == placement}
        sizes = sorted({size for _, size in here})
        rows = [
            [op, *(_speed(here.get((op, size))) for size in sizes)]
            for op in dict.fromkeys(op for op, _ in here)
        ]
        tables.append(Table([placement, *(size_word(size) if size else "no data" for size in sizes)], rows))
    return tables


def _speed(ratio: float | None) -> str | Cell:
    if ratio is None:
        return "-"
    if ratio > 1.05:
        return Cell(speed_word(ratio), "worse")
    return Cell(speed_word(ratio), depth=0.8 * min(1.0, max(0.0, math.log10(1 / ratio))))


def _wrong(steps: dict[str, Record]) -> Table | None:
    """Choices that cost more than they should, the dearest first."""
    cells = sorted((one for one in _cells(steps) if one["ratio"] > WITHIN), key=lambda one: -one["ratio"])
    if not cells:
        return None
    rows = [
        [
            *(cell["placement"], cell["op"], size_word(cell["bytes"]), cell["chosen"], cell["best"]),
            *(f"{cell['forced_us'][cell['best']]:.3g}", f"{cell['ratio']:.2f}", cell["model"]),
            f"{cell['model_ratio']:.2f}",
        ]
        for cell in cells
    ]
    titles = ["CPUs", "operation", "bytes", "chosen", "fastest", "its us", "chosen by it", "model's", "by it"]
    return Table(titles, rows, (0, 1, 3, 4, 7))


def _compared(surveys: Iterable[Record]) -> Table:
    rows = []
    for survey in surveys:
        lines, ratios, cells = _line_groups(survey), _of_collectives(survey["steps"]), _cells(survey["steps"])
        rows.append([survey["machine"]["model"], str(survey["machine"]["cpus"])])
        rows[-1] += [
            f"{statistics.median(lines[name]):.0f}" if lines[name] else "-" for name in RELATIONS[1:]
        ]
        rows[-1].append(f"{geometric_mean(ratios):.2f}" if ratios else "-")
        for key in ("ratio", "model_ratio"):
            part = sum(cell[key] <= WITHIN for cell in cells) / len(cells) if cells else None
            rows[-1].append("-" if part is None else f"{part:.0%}")
    titles = [
        "machine",
        "CPUs",
        *(f"line, one {name}, ns" for name in RELATIONS[1:]),
        "by the best plain MPI",
    ]
    return Table([*titles, "choices within 10%", "the model's"], rows)
