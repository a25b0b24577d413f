"""Says why nothing of a job was served, when `nearfield run`'s launcher has ended (tools/run.cpp starts it then)."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from nearfield.outcome import describe, read_outcome
from nearfield.settings import add_command


def options(parser: argparse.ArgumentParser) -> None:
    """The file in which processes have left their word, the launcher's exit status and its command line."""
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("status", type=int, metavar="STATUS", help="as a shell has it; -1: nobody knows")
    add_command(parser, "COMMAND...")


def main(asked: argparse.Namespace) -> None:
    """Says it in one message, and removes the file."""
    outcome = read_outcome(asked.file)
    asked.file.unlink()
    lines = describe(outcome, asked.status)
    if lines and not outcome.reasons:
        from nearfield.check import explain_absence

        lines += explain_absence(asked.command, dict(os.environ))
    if lines:
        print("nearfield run: " + "\n  ".join(lines), file=sys.stderr, flush=True)
