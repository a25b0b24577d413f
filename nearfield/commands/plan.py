"""Calculates the memory that Nearfield takes on a node, and suggests in which of the node's memories to place it (docs/reference/placement.md)."""

from __future__ import annotations

import argparse
from pathlib import Path

from nearfield.values import MACHINE, RANKS_PER_NODE, at_least, parse_bytes


def options(parser: argparse.ArgumentParser) -> None:
    """What `nearfield plan` takes."""
    add = parser.add_argument
    add("--ranks", type=at_least(0), default=0, help=f"ranks of a node; {RANKS_PER_NODE}")
    add("--machine", default="here", help=MACHINE)
    add("--pairs", default="all", help="whom each rank sends to: all, none or neighbours:N")
    for name, meaning in (
        ("collectives", "assume no collectives on arrays that peers cannot map, such as static arrays"),
        ("long", "assume no messages beyond 16 KiB (beyond 1 KiB if each rank has a CPU)"),
    ):
        add(f"--{name}", action="store_true", default=True, help=argparse.SUPPRESS)
        add(f"--no-{name}", dest=name, action="store_false", help=meaning)
    add(
        "--communicators",
        type=at_least(0),
        default=0,
        help="number of communicators with collectives, beside MPI_COMM_WORLD",
    )
    add("--heap", type=parse_bytes, metavar="BYTES", help="bytes of the large arrays of one rank: 64M")
    add("--windows", type=parse_bytes, metavar="BYTES", help="bytes of window memory of one rank")
    add("--alloc-mem", type=parse_bytes, metavar="BYTES", help="bytes that one rank gets from MPI_Alloc_mem")
    add(
        "--job",
        type=Path,
        help="plan for a program that has run: a file that it wrote because of NEARFIELD_STATS_FILE, or the directory of these files",
    )
    add("--json", action="store_true", help="print JSON")


def main(asked: argparse.Namespace) -> None:
    """Prints the plan."""
    from json import dumps

    from nearfield import plan
    from nearfield.model import ranks_of_a_node
    from nearfield.statistics import read_statistics

    if asked.job:
        made = plan.plan_job(read_statistics(asked.job), asked.machine)
    else:
        count = ranks_of_a_node(asked.ranks, asked.machine)
        names = ("heap", "windows", "alloc_mem", "collectives", "long", "communicators")
        values = {name: int(getattr(asked, name)) for name in names if getattr(asked, name) is not None}
        made = plan.make_plan(count, plan.partners_of(asked.pairs, count), asked.machine, **values)
    if asked.json:
        print(dumps(made, indent=1))
    else:
        plan.show(made)
