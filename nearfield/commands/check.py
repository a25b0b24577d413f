"""Says whether `nearfield run` would serve programs or scripts, under which MPI and by which library, and if not, why. For `python app.py` it
imports what the script imports. The verdict "perhaps" means that a program opens its MPI only while it runs. Exit status: 0 if all programs
are or may be served, 1 if one is not, 2 if nothing could be checked.
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
