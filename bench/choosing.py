"""How well the model and the trials choose: every candidate forced, and the choice, in turn in one job.

    python bench/choosing.py --ranks 2,8 --sizes 8,1K,16K,256K --host mpich --minutes 5

Prints a line for each cell as it comes, then as tables the cells in which the model's choice takes more than 1.3 of the fastest
candidate's time, and the algorithms whose estimates are off by as much. Writes bench/results/choosing-MACHINE-N-ranks.json with the
machine; with `--out FOLDER` there. Jobs share the minutes evenly; the cells for which the time did not suffice are named.

nearfield/choices.py measures, and says what a cell is.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from nearfield.bench import host_version  # noqa: E402
from nearfield.choices import BEGINNING, LEAST, WRONG, Cell, measure, shares  # noqa: E402
from nearfield.hosts import Host, find_hosts, parse_hosts  # noqa: E402
from nearfield.machine import describe_machine, machine, machine_word  # noqa: E402
from nearfield.operations import OPERATIONS  # noqa: E402
from nearfield.states import States  # noqa: E402
from nearfield.tables import print_columns  # noqa: E402
from nearfield.values import check_words, parse_ranks, parse_sizes  # noqa: E402


def main() -> None:
    """Measures what the minutes suffice for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=parse_ranks, default=[2])
    parser.add_argument("--sizes", type=parse_sizes, default=parse_sizes("8,1K,16K,256K"))
    parser.add_argument("--op", default=OPERATIONS.replace("barrier,", ""))
    parser.add_argument("--host", default="mpich")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    asked = parser.parse_args()
    operations = check_words(asked.op.split(","), OPERATIONS.split(","), "collective with algorithms")
    host = find_hosts()[parse_hosts(asked.host)[0]]
    until = time.monotonic() + 60 * asked.minutes
    jobs = [(op, n) for n in asked.ranks for op in operations]
    cells: list[Cell] = []
    missing: list[str] = []
    print(describe_machine(), flush=True)
    for i, (op, n) in enumerate(jobs):
        share = (until - time.monotonic()) / (len(jobs) - i)
        seconds = max(LEAST, 0.6 * (share - BEGINNING) / len(asked.sizes))
        found = measure(host, op, n, asked.sizes, seconds, until - time.monotonic()) if share > 0 else []
        if len(found) < len(asked.sizes):
            missing.append(f"{op} on {n} ranks from {asked.sizes[len(found)]} B on")
        for cell in found:
            print(line(cell), flush=True)
        cells += found
    put_into_states(cells)
    show(cells)
    if missing:
        print(f"{asked.minutes:g} minutes did not suffice for {', '.join(missing)}")
    for n in asked.ranks:
        write(
            [cell for cell in cells if cell["ranks"] == n],
            host,
            asked.out / f"choosing-{machine_word()}-{n}-ranks.json",
        )


def line(cell: Cell) -> str:
    """One cell: what trials and the model choose, by the fastest one."""
    return (
        f"{cell['op']:21} {cell['ranks']:3} {cell['bytes']:8}  chosen {cell['chosen']:15} {cell['ratio']:5.2f}"
        f"  model {cell['model']:15} {cell['model_ratio']:5.2f}  best {cell['best']:15}"
        f" {cell['forced_us'][cell['best']]:10.3f} us  trials {cell['trials']:.2%}"
    )


def put_into_states(cells: list[Cell]) -> None:
    """Adds the machine's state to each cell."""
    states = States(cell["line_ns"] for cell in cells)
    for cell in cells:
        cell["state"] = states.name(cell["line_ns"])


def show(cells: list[Cell]) -> None:
    """Prints the cells that the model gets wrong, and how often the model and the trials are right."""
    wrong = sorted((c for c in cells if c["model_ratio"] > WRONG), key=lambda cell: -cell["model_ratio"])
    if wrong:
        print(f"\nThe model's choice takes more than {WRONG:g} of the fastest's time:")
        titles = [
            "op",
            "ranks",
            "bytes",
            "line",
            "model",
            "us",
            "estimated",
            "best",
            "us",
            "estimated",
            "ratio",
            "trials",
        ]
        print_columns(titles, [words(cell) for cell in wrong], [None] * len(wrong))
    off = off_estimates(cells)
    if off:
        print(f"\nEstimates off by more than {WRONG:g} in the median of their cells, estimated by measured:")
        print_columns(["op", "ranks", "algorithm", "median", "from", "to", "cells"], off, [None] * len(off))
    print()
    for who, key in (("trials", "ratio"), ("the model", "model_ratio")):
        print(f"{who}: {shares(cell[key] for cell in cells)}")
    if cells:
        print(f"trials cost at most {max(cell['trials'] for cell in cells):.2%} of 10,000 calls")


def words(cell: Cell) -> list[str]:
    """A line of the first table."""
    found = [cell["op"], str(cell["ranks"]), str(cell["bytes"]), cell["state"]]
    for name in (cell["model"], cell["best"]):
        estimate = cell["estimated_us"].get(name, math.nan)
        found += [name, f"{cell['forced_us'][name]:.3f}", f"{estimate:.3f}"]
    return [*found, f"{cell['model_ratio']:.2f}", cell["chosen"]]


def off_estimates(cells: list[Cell]) -> list[list[str]]:
    """Lines of the second table."""
    ratios: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    for cell in cells:
        for name, estimate in cell["estimated_us"].items():
            ratios[cell["op"], cell["ranks"], name].append(estimate / cell["forced_us"][name])
    middle = {key: statistics.median(found) for key, found in ratios.items()}
    wrong = [key for key in middle if abs(math.log(middle[key])) > math.log(WRONG)]
    return [
        [
            key[0],
            str(key[1]),
            key[2],
            *(f"{ratio:.2f}" for ratio in (middle[key], min(ratios[key]), max(ratios[key]))),
        ]
        + [str(len(ratios[key]))]
        for key in sorted(wrong, key=lambda key: -abs(math.log(middle[key])))
    ]


def write(cells: list[Cell], host: Host, path: Path) -> None:
    """The machine, and its cells."""
    if not cells:
        return
    about = {"machine": machine() | {"states": States(cell["line_ns"] for cell in cells).found}}
    about |= {"host": host.name, "version": host_version(host)}
    text = ",\n".join(json.dumps(cell) for cell in cells)
    path.write_text(json.dumps(about)[:-1] + f', "cells": [\n{text}\n]}}\n')
    print(path)


if __name__ == "__main__":
    try:
        main()
    except ValueError as error:
        sys.exit(str(error))
