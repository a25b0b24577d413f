"""What tests over nodes share: beds, programs, and which algorithms there are for communicators that span nodes."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import pytest

from nearfield.explain import explain
from nearfield.statistics import PATTERN, Statistics, read_statistics
from tests.mpi.jobs import compile_c, hosts
from tests.nodes.bed import Nodes, Unavailable
from tests.nodes.slurm import Slurm

PROGRAMS = Path(__file__).parent / "programs"
MAIN = hosts("mpich", "openmpi")
Made = TypeVar("Made", Nodes, Slurm)

# The rows of communicators that span nodes, and the collectives that have some.
ROWS = ("leader", "lanes", "pipelined", "host")
ROOTED = ("bcast", "reduce", "gather", "scatter")
OPERATIONS = ("barrier", "allreduce", "allgather", "alltoall", "reduce_scatter_block", *ROOTED)
# Rows whose sums of floating-point numbers have the same bits in one layout.
SAME_BITS = ("leader", "lanes", "pipelined")


def empty_statistics(nodes: Nodes) -> str:
    """NEARFIELD_STATS_FILE of the next job; those of the last one are forgotten."""
    place = nodes.files / "statistics"
    place.mkdir(exist_ok=True)
    for file in place.iterdir():
        file.unlink()
    return f"{place}/{PATTERN}"


def statistics_in(nodes: Nodes) -> list[Statistics]:
    """What the ranks of that job have written."""
    return read_statistics(nodes.files / "statistics")


@functools.cache
def table() -> dict[str, list[str]]:
    """The engine's table of rows over nodes, by collective."""
    return {
        op: [row["name"] for row in explain(op, 2, 8, "epyc-2x96", nodes=2)["rows"]] + ["host"]
        for op in OPERATIONS
    }


@functools.cache
def rows() -> dict[str, list[str]]:
    """Those of ROWS that each collective has."""
    return {op: [row for row in ROWS if row in names] for op, names in table().items()}


def forced(*names: str) -> str:
    """NEARFIELD_ALGORITHM that forces rows of these names (several: they are tried) wherever there are such."""
    having = {op: [name for name in names if name in found] for op, found in rows().items()}
    return ";".join(f"{op}:{','.join(found)}" for op, found in having.items() if found)


@contextlib.contextmanager
def made_or_skip(made: AbstractContextManager[Made]) -> Iterator[Made]:
    """Nodes or Slurm, or a skipped test that says why there are none; in CI there have to be."""
    with contextlib.ExitStack() as stack:
        try:
            ready = stack.enter_context(made)
        except Unavailable as why:
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(str(why))
        yield ready


def program(host: str, source: str, *arguments: str) -> list[str]:
    """The command line of one of the programs here, compiled for the host."""
    return [compile_c(host, str(PROGRAMS / source)), *arguments]
