"""Measures which algorithms are fastest on one node, and writes the file for NEARFIELD_CHOOSE=file. Algorithms over several nodes are not
measured beforehand: jobs try them in their first calls (NEARFIELD_CHOOSE=trial).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from nearfield.operations import OPERATIONS
from nearfield.values import at_least, parse_ranks, parse_sizes, words_of


def options(parser: argparse.ArgumentParser) -> None:
    """What `nearfield tune` takes."""
    add, collectives = parser.add_argument, words_of(OPERATIONS.split(","), "collective with algorithms")
    add("--op", type=collectives, default=OPERATIONS, help="collectives, separated by commas")
    add("--ranks", type=parse_ranks, help="numbers of ranks; by default the number of CPUs")
    add("--sizes", type=parse_sizes, default="8:4M", help="bytes: 8:4M (powers of two), or a list")
    add("--host", default="mpich", help="the MPI library whose launcher starts the ranks")
    add("--seconds", type=at_least(0.0), default=0.3, help="time per operation and size")
    add("--out", type=Path, metavar="FILE", help="the file; by default the one that ranks read")


def main(asked: argparse.Namespace) -> None:
    """Measures and writes."""
    import os

    from nearfield import tune
    from nearfield.outputs import check_outputs

    check_outputs([asked.out])
    counts = asked.ranks or [max(2, len(os.sched_getaffinity(0)))]
    path = asked.out or tune.stored_tuning()
    cells = tune.tune(asked.op, counts, asked.sizes, asked.host, asked.seconds, path)
    print(f"{len(cells)} cells in {path}; NEARFIELD_CHOOSE=file uses them", file=sys.stderr)
