"""Estimates the time of each algorithm by the cost model, and shows which one is chosen."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from nearfield.operations import WITH_ALGORITHMS
from nearfield.values import (
    MACHINE,
    RANKS_PER_NODE,
    at_least,
    parse_nodes,
    parse_ranks,
    parse_sizes,
    words_of,
)


def options(parser: argparse.ArgumentParser) -> None:
    """What `nearfield model` takes."""
    add = parser.add_argument
    add(
        "op",
        metavar="OP",
        nargs="?",
        type=words_of(WITH_ALGORITHMS, "collective with algorithms"),
        default="allreduce",
        help="collectives, separated by commas; allreduce unless given",
    )
    add(
        "--ranks", type=parse_ranks, default="2:32", help="numbers of ranks: 2:192 (powers of two), or a list"
    )
    add("--sizes", type=parse_sizes, default="8:16M", help="bytes: 8:16M, or a list")
    add(
        "--nodes",
        type=parse_nodes,
        default=[],
        help="estimate collectives over several nodes: numbers of nodes, each with --ranks-per-node ranks",
    )
    add("--ranks-per-node", type=at_least(0), default=0, help=RANKS_PER_NODE)
    add("--machine", default="here", help=MACHINE)
    add(
        "--calibrate",
        action="store_true",
        help="first measure this machine's figures and store them; if mpiexec starts it on several nodes, measure the network's figures and store them on each node",
    )
    add("--constants", action="store_true", help="print the constants of the cost model instead")
    add("--simulate", action="store_true", help="simulate the caches for every order of an alltoall instead")
    add(
        "--state",
        default="live",
        help="buffers of --simulate: live (written before, read after) or warm (untouched)",
    )
    add(
        "--shift",
        type=at_least(0),
        default=0,
        help="for --simulate: by how many bytes the place of a buffer in its page differs from one rank to the next",
    )
    add("--json", type=Path, metavar="FILE", help="write the cells as JSON")
    add("--svg", "--plot", type=Path, metavar="FILE", help="write a plot")


def main(asked: argparse.Namespace) -> None:
    """Prints the cells, and writes them."""
    from json import dumps

    from nearfield import model, simulate
    from nearfield.job import present_job
    from nearfield.outputs import check_outputs

    check_outputs((asked.json, asked.svg))
    if asked.constants and asked.svg:
        raise ValueError("--plot does not go with --constants")
    if asked.simulate and asked.op != ["alltoall"]:
        raise ValueError(f"--simulate takes alltoall only, not {', '.join(asked.op)}")
    if asked.calibrate:
        stored = model.calibrate()
        if (job := present_job()) and job.rank > 0:
            return
        print(f"stored in {stored}", file=sys.stderr)
    show, plot = model.show, model.plot
    if asked.constants:
        cells, show = model.constants(), model.show_constants
    elif asked.simulate:
        cells = simulate.simulate(asked.ranks, asked.sizes, asked.machine, asked.state, asked.shift)
        show, plot = simulate.show, simulate.plot
    else:
        ranks = asked.ranks
        if asked.nodes:
            ranks, show = [model.ranks_of_a_node(asked.ranks_per_node, asked.machine)], model.show_nodes
        every = [model.predict(name, ranks, asked.sizes, asked.machine, asked.nodes) for name in asked.op]
        cells = [cell for one in every for cell in one]
    show(cells)
    if asked.json:
        asked.json.write_text("[\n" + ",\n".join(map(dumps, cells)) + "\n]\n")
    if asked.svg:
        plot(cells, asked.svg)
