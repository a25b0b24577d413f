"""Says whether programs or scripts, as a launcher would be given them, would be served under `nearfield run`, by which MPI and build of
Nearfield, and why not. Of `python app.py` it imports what the script imports. Exit status: 0 where all are, or may be: a program that opens
its MPI while it runs tells only then; 1; 2.
"""

from __future__ import annotations

import argparse
import os

from nearfield.settings import add_host, settings_of


def options(parser: argparse.ArgumentParser) -> None:
    """What `nearfield check` takes."""
    add_host(parser)
    parser.add_argument("programs", nargs="+", metavar="PROGRAMS...", help=argparse.SUPPRESS)


def main(asked: argparse.Namespace) -> int:
    """Prints a line for each program."""
    from nearfield.check import check_all

    verdicts = check_all(asked.programs, dict(os.environ) | settings_of(asked))
    print(*verdicts, sep="\n")
    return 0 if all(verdict.served for verdict in verdicts) else 1
