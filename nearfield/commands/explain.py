"""Explains which algorithm a call would use, and why. Also prints the estimated time of the other algorithms."""

from __future__ import annotations

import argparse
import sys

from nearfield.operations import COLLECTIVES
from nearfield.values import MACHINE, RANKS_PER_NODE, at_least, check_words, parse_bytes


def options(parser: argparse.ArgumentParser) -> None:
    """What `nearfield explain` takes."""
    add = parser.add_argument
    add("op", metavar="OP", help="a collective, or `message`")
    add("--ranks", type=at_least(1), help="number of ranks; 2 unless given")
    add("--bytes", type=parse_bytes, help="bytes of one rank's vector or block: 4096, 4K, 1M; 8 unless given")
    add("--nodes", type=at_least(1), default=1, help="number of nodes, each with --ranks-per-node ranks")
    add("--ranks-per-node", type=at_least(0), default=0, help=RANKS_PER_NODE)
    add("--machine", default="here", help=MACHINE)
    add("--json", action="store_true", help="print JSON")


def main(asked: argparse.Namespace) -> None:
    """Prints the explanation."""
    from json import dumps

    from nearfield import explain
    from nearfield.model import ranks_of_a_node

    check_words([asked.op], (*COLLECTIVES, "message"), "collective")
    if asked.bytes is not None and asked.op == "barrier":
        print("--bytes does not apply: a barrier has no data", file=sys.stderr)
    if asked.ranks and (asked.nodes > 1 or asked.op == "message"):
        between = "a message is between two ranks"
        whose = between if asked.op == "message" else "--ranks-per-node says how many"
        print(f"--ranks does not apply: {whose}", file=sys.stderr)
    size = 8 if asked.bytes is None else asked.bytes
    ranks = asked.ranks or 2
    if asked.nodes > 1:
        ranks = ranks_of_a_node(asked.ranks_per_node, asked.machine)
    found = explain.explain(asked.op, ranks, size, asked.machine, asked.nodes)
    if asked.json:
        print(dumps(found, indent=1))
    else:
        explain.show(found)
