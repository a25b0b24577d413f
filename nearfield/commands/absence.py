"""Says why no process came to Nearfield, when the launcher of `nearfield run` has ended (tools/afterwards.cpp starts it then)."""

from __future__ import annotations

import argparse
import os
import sys

from nearfield.settings import add_command

NOBODY = "no process of this node completed MPI_Init with Nearfield loaded"


def options(parser: argparse.ArgumentParser) -> None:
    """The launcher's exit status and its command line."""
    parser.add_argument("status", type=int, metavar="STATUS", help="as a shell has it; -1: unknown")
    add_command(parser, "COMMAND...")


def main(asked: argparse.Namespace) -> None:
    """Writes one message to standard error."""
    from nearfield.check import explain_absence

    if asked.status > 0:
        first = f"the job ended with exit status {asked.status}, and {NOBODY}"
    else:
        first = f"{NOBODY} (Nearfield does not serve programs that use only MPI sessions); ranks of other nodes are not known here"
    lines = [first, *explain_absence(asked.command, dict(os.environ))]
    print("nearfield run: " + "\n  ".join(lines), file=sys.stderr, flush=True)
