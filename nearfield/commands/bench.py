"""Measures MPI calls with and without Nearfield. Both are measured in turns, in the same processes and on the same buffers."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearfield.hosts import HOSTS, parse_hosts
from nearfield.operations import (
    AS_PROGRAMS,
    FINDS_NOTHING,
    LOOPS,
    OF_MESSAGES,
    ONE_SIDED,
    OPERATIONS,
    OWN_LOOP,
    PATTERNS,
    PROTOCOLS,
    TARGETS,
    WINDOWS,
)
from nearfield.values import at_least, parse_ranks, words_of

if TYPE_CHECKING:
    from nearfield.bench import Bed

OP = (
    f"operations, separated by commas. Beside those of the default: {', '.join(OF_MESSAGES)}; ibcast and the like are the non-blocking forms. Messages: {', '.join(PATTERNS)}. "
    f"Messages in patterns of programs: {', '.join(AS_PROGRAMS)}. Calls that find no message: {', '.join(FINDS_NOTHING)}. "
    f"On windows: {', '.join(ONE_SIDED)}."
)


def options(parser: argparse.ArgumentParser) -> None:
    """What `nearfield bench` takes."""
    add = parser.add_argument
    add("--op", default=OPERATIONS, help=OP)
    add("--ranks", type=parse_ranks, default="2", help="numbers of ranks")
    add("--sizes", default="8:4M", help="bytes of a rank's vector or block: 8:4M (powers of two), or a list")
    add(
        "--hosts",
        type=parse_hosts,
        default="mpich",
        help=f"MPI libraries: some of {', '.join(HOSTS)}; intel stands for impi",
    )
    add(
        "--buffers",
        default="used",
        help="used: before each call the program writes what it sends, afterwards it reads what has arrived, and the time of both is subtracted; modified: it only writes; warm: it does neither; cold: the buffers are in no cache",
    )
    add("--seconds", type=at_least(0.0), default=1.0, help="time per operation, size and kind of buffer")
    add("--quick", action="store_true", help="measure every fourth power of two only, for 0.15 s each")
    add(
        "--scan",
        action="store_true",
        help="also measure the sizes beside each power of two and halfway to the next; at the end list the sizes that take 1.2 times as long as both neighbours",
    )
    add("--algorithm", default="", help="force or exclude algorithms, as NEARFIELD_ALGORITHM does")
    add(
        "--heap",
        type=words_of(("shared", "off"), "heap"),
        default="shared",
        help="where the buffers lie: in the shared heap, or (off) in the C library's",
    )
    add("--floor", action="store_true", help="also measure the same work by bare code on mapped memory")
    add(
        "--loop",
        default=OWN_LOOP,
        help=f"how calls follow each other, some of {', '.join(LOOPS)}: our own loop, or the loops of IMB and OSU, which leave the buffers untouched (docs/dev/measuring.md)",
    )
    add(
        "--short",
        type=at_least(0),
        default=0,
        help="time loops of this many calls, for example 100, from the first call on a new communicator on",
    )
    add(
        "--protocol",
        default="auto",
        help=f"protocols of messages, measured one after the other: some of {', '.join(PROTOCOLS)}",
    )
    add(
        "--window",
        default="allocate",
        help=f"for one-sided calls, kinds of windows: some of {', '.join(WINDOWS)}",
    )
    add(
        "--target",
        default="own,one",
        help=f"for one-sided calls, some of {', '.join(TARGETS)}: own: each rank accesses the next rank; one: all ranks access rank 0, and accumulates the same place; apart: all access rank 0, each another place",
    )
    add(
        "--beside",
        default="0",
        help="run N busy processes meanwhile: N or N,kind; the kind is cpu (computes), memory (reads and writes memory) or waking (sleeps and wakes often)",
    )
    add("--json", type=Path, metavar="FILE", help="write the rows as JSON")
    add("--report", type=Path, metavar="FILE", help="write an HTML report with plots")
    add("--svg", type=Path, metavar="FILE", help="write one plot of all rows")


def main(asked: argparse.Namespace) -> None:
    """Measures, shows and writes. Raises ValueError, NotBuilt."""
    from nearfield.bench import save
    from nearfield.model import add_predictions
    from nearfield.outputs import PLOT, check_outputs
    from nearfield.scan import show_bumps
    from nearfield.summary import show_summary

    check_outputs((asked.json, asked.report, asked.svg), [PLOT] if asked.report or asked.svg else [])
    rows, failures = measure(asked)
    error = add_predictions(rows)
    show_summary(rows)
    if asked.scan:
        show_bumps(rows)
    if error is not None:
        print(f"median error of the model: {error:.0%}", file=sys.stderr)
    save(rows, asked.json, asked.report, asked.svg)
    if failures:
        raise ValueError("\n".join([f"{len(failures)} jobs failed", *failures]))


def measure(asked: argparse.Namespace, bed: Bed | None = None) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows of calls, on this machine or on a bed, and what is to be said of jobs that failed."""
    from nearfield.bench import run_bench
    from nearfield.beside import Beside
    from nearfield.scan import as_given, scanned
    from nearfield.values import parse_sizes

    operations, lengths = asked.op.split(","), parse_sizes(asked.sizes, asked.quick)
    rows: list[dict[str, Any]] = []
    failures: list[str] = []
    for group, of_group in (scanned if asked.scan else as_given)(operations, lengths):
        rows += run_bench(
            *(group, asked.ranks, of_group, asked.hosts, asked.buffers.split(",")),
            *(0.15 if asked.quick else asked.seconds, asked.algorithm, asked.heap[0], asked.floor),
            protocols=asked.protocol.split(","),
            short=asked.short,
            bed=bed,
            windows=asked.window.split(","),
            targets=asked.target.split(","),
            failures=failures,
            beside=Beside.parse(asked.beside),
            loops=asked.loop.split(","),
        )
    return rows, failures
