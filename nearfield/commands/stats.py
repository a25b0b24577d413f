"""Sums up the statistics that ranks of jobs have written by NEARFIELD_STATS_FILE: what was served in how many jobs, and what was left to the
MPI library, with reasons.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def options(parser: argparse.ArgumentParser) -> None:
    """What `nearfield stats` takes."""
    meaning = "files that NEARFIELD_STATS_FILE names, or directories with them (*.json)"
    parser.add_argument("places", type=Path, nargs="+", metavar="PLACES...", help=meaning)


def main(asked: argparse.Namespace) -> None:
    """Prints the sums."""
    from nearfield.served import summarize
    from nearfield.statistics import read_statistics

    print(*summarize(read_statistics(*asked.places)), sep="\n")
