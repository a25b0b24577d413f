"""Adds up the files that the ranks of jobs write if NEARFIELD_STATS_FILE is set. Prints which calls Nearfield served in how many jobs, which
calls it left to the MPI library, and why.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def options(parser: argparse.ArgumentParser) -> None:
    """What `nearfield stats` takes."""
    meaning = "files written by NEARFIELD_STATS_FILE, or directories with such files (*.json)"
    parser.add_argument("places", type=Path, nargs="+", metavar="PLACES...", help=meaning)


def main(asked: argparse.Namespace) -> None:
    """Prints the sums."""
    from nearfield.served import summarize
    from nearfield.statistics import read_statistics

    print(*summarize(read_statistics(*asked.places)), sep="\n")
