"""Suggests a CPU for each rank of a program that has run. Ranks that have much for each other come near each other; says what that gains by
the model, and what launchers take for it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from nearfield.values import MACHINE, at_least


def options(parser: argparse.ArgumentParser) -> None:
    """What `nearfield place` takes."""
    add = parser.add_argument
    add("run", type=Path, metavar="RUN", help="what `nearfield run --report` has stored beside its page")
    add("--machine", default="here", help=f"{MACHINE}; of here lines are measured")
    add("--world", type=at_least(1), default=1, help="which of the run's programs, where it had several")
    add("--rankfile", type=Path, metavar="FILE", help="write it as Open MPI's rankfile")
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
