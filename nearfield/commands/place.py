"""Suggests a CPU for each rank of a program that has run, so that ranks that exchange much data share caches and packages. Prints the gain that
the cost model estimates, and the options of each launcher for that order.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from nearfield.values import MACHINE, at_least


def options(parser: argparse.ArgumentParser) -> None:
    """What `nearfield place` takes."""
    add = parser.add_argument
    add(
        "run",
        type=Path,
        metavar="RUN",
        help="the JSON file that `nearfield run --report` has written beside its page",
    )
    add("--machine", default="here", help=f"{MACHINE}; on this machine, distances between CPUs are measured")
    add(
        "--world",
        type=at_least(1),
        default=1,
        help="which program of the run to place, if the run started several: 1 is the first",
    )
    add("--rankfile", type=Path, metavar="FILE", help="write the order as a rankfile of Open MPI")
    add("--node", default="localhost", help="the node's name in the rankfile")
    add("--json", action="store_true", help="print JSON")


def main(asked: argparse.Namespace) -> None:
    """Prints what is found, and writes the rankfile."""
    from dataclasses import asdict
    from json import dumps

    from nearfield import place
    from nearfield.outputs import check_outputs

    check_outputs([asked.rankfile])
    found = place.suggest(asked.run, asked.machine, asked.world)
    if asked.rankfile:
        asked.rankfile.write_text(place.rankfile(found, asked.node))
    if asked.json:
        print(dumps(asdict(found) | {"launchers": place.words_for(found, asked.rankfile)}, indent=1))
    else:
        place.show(found, asked.rankfile)
