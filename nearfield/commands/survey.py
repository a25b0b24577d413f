"""Measures a machine: distances between CPUs, messages, and collectives by MPI and by algorithm. Needs no root. If it is stopped, the same
command continues it. It writes one archive, without names of machines, users and files; --report makes a page of one archive or several.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from nearfield.operations import WITH_ALGORITHMS
from nearfield.values import at_least, parse_ranks, words_of


def options(parser: argparse.ArgumentParser) -> None:
    """What `nearfield survey` takes."""
    add = parser.add_argument
    add(
        "--report",
        type=Path,
        nargs="+",
        metavar="ARCHIVE",
        help="measure nothing, and write a page of one archive or several",
    )
    add(
        "--out",
        type=Path,
        help="the directory of the survey; if it already has a survey, that one is continued. With --report: the page, by default survey.html",
    )
    add(
        "--minutes",
        type=at_least(0.01),
        default=10.0,
        help="how many minutes it measures: with 30 it completes more steps than with 10, and with 120 more than with 30",
    )
    add(
        "--hosts",
        help="MPI libraries to measure; algorithms are measured with the first one only; by default all that are found",
    )
    add(
        "--op",
        type=words_of(WITH_ALGORITHMS, "collective with algorithms"),
        help="collectives to measure; by default nine",
    )
    add(
        "--ranks",
        type=parse_ranks,
        default=[],
        help="also measure with these numbers of ranks; the ranks share all CPUs",
    )


def main(asked: argparse.Namespace) -> None:
    """Measures, or writes a page."""
    if asked.report:
        return _write_page(asked.report, asked.out or Path("survey.html"))
    if not asked.out:
        raise ValueError("--out names a directory for the survey; --report makes a page of archives")
    from nearfield.hosts import find_hosts, parse_hosts
    from nearfield.survey.measuring import COLLECTIVES, Survey

    names = parse_hosts(asked.hosts) if asked.hosts else list(find_hosts())
    made = Survey(asked.out, asked.minutes, names, asked.ranks, asked.op or COLLECTIVES)
    for text in made.remarks():
        print(f"nearfield survey: {text}", file=sys.stderr)
    archive = made.run()
    if missing := made.missing():
        print(
            f"nearfield survey: {len(missing)} of {len(made.steps)} steps are missing; the same command continues with"
            " them if --minutes is larger than before",
            file=sys.stderr,
        )
    print(f"{archive}: README.txt in it says what it contains")


def _write_page(archives: list[Path], page: Path) -> None:
    from nearfield.outputs import PAGE, check_outputs
    from nearfield.survey.archive import read

    check_outputs([page], [PAGE])
    from nearfield.survey.page import write_survey

    write_survey([read(path) for path in archives], page)
    print(f"report: {page}")
