"""Runs a command without Nearfield, with the shared heap alone, with faster MPI alone, and with both, in turns. Says what each gains, which
share of the time is in MPI, and whether the outputs are the same. The command runs in this directory, 22 times by default. If standard
input is a file, each run reads it. Exit status: 0 if all runs ended and printed alike, 1 if one did not, 2 if nothing was compared.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from nearfield.settings import add_command, add_host, add_settings, settings_of
from nearfield.values import at_least


def options(parser: argparse.ArgumentParser) -> None:
    """What `nearfield compare` takes."""
    parser.add_argument(
        "--runs", type=at_least(1), default=5, metavar="N", help="runs in each of the four ways"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures as JSON")
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="also write the page of a run with Nearfield, as `nearfield run --report` does",
    )
    parser.add_argument(
        "--status",
        type=at_least(0),
        default=0,
        metavar="N",
        help="the normal exit status of the command; 0 unless given",
    )
    add_host(parser)
    add_settings(parser, ("--log", "--log-file", "--algorithm"))
    add_command(parser, "LAUNCHER ARGUMENTS...")


def main(asked: argparse.Namespace) -> int:
    """Compares, shows and writes."""
    import json

    from nearfield.compare import compare
    from nearfield.outputs import check_outputs
    from nearfield.progress import Progress
    from nearfield.verdict import as_json, show

    page = asked.report
    if page and page.suffix not in (".html", ".htm"):
        raise ValueError(f"--report writes a page whose name ends in .html, not {page.name}")
    check_outputs((asked.json, page, page.with_suffix(".json") if page else None))
    env = dict(os.environ) | settings_of(asked)
    with Progress() as progress:
        found = compare(
            asked.command,
            env,
            asked.runs,
            asked.status,
            page,
            lambda text: progress.begin(f"nearfield compare: {text}"),
        )
    show(found)
    if asked.json:
        asked.json.write_text(json.dumps(as_json(found), indent=1) + "\n")
    return 0 if found.same else 1
