"""What tests over nodes share: beds, programs, and which algorithms there are for communicators that span nodes."""

from __future__ import annotations

import contextlib
import functools
import json
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import pytest

from nearfield.nodes import Nodes, Unavailable
from nearfield.slurm import Slurm
from tests.mpi.jobs import HOSTS, compile_c, environment, hosts, python_of

PROGRAMS = Path(__file__).parent / "programs"
MAIN = hosts("mpich", "openmpi")
Made = TypeVar("Made", Nodes, Slurm)

# The rows of communicators that span nodes, and the collectives that have some.
ROWS = ("leader", "lanes", "pipelined", "host")
ROOTED = ("bcast", "reduce", "gather", "scatter")
OPERATIONS = ("barrier", "allreduce", "allgather", "alltoall", "reduce_scatter_block", *ROOTED)
# Rows whose sums of floating-point numbers have the same bits in one layout.
SAME_BITS = ("leader", "lanes", "pipelined")

ASK = """
import json, sys
from mpi4py import MPI
found = {}
for op in sys.argv[1].split(","):
    for row in sys.argv[2].split(","):
        info = MPI.Info.Create({"nearfield_algorithm": f"{op}:{row}"})
        try:
            MPI.COMM_WORLD.Set_info(info)
            found.setdefault(op, []).append(row)
        except MPI.Exception:
            pass
print(json.dumps(found))
"""


@functools.cache
def rows() -> dict[str, list[str]]:
    """Those of ROWS that a hint may name, by collective; a library that knows none of them has none."""
    for host in ("mpich", "openmpi"):
        if HOSTS[host].mpiexec.exists():
            command = [python_of(host), "-c", ASK, ",".join(OPERATIONS), ",".join(ROWS)]
            asked = subprocess.run(
                command, env=environment(host, True), capture_output=True, text=True, timeout=30, check=True
            )
            return json.loads(asked.stdout.splitlines()[-1])
    return {}


def needs_rows() -> None:
    """Skips a test of what is not there yet."""
    if not rows():
        pytest.skip("no algorithm serves communicators that span nodes")


def forced(*names: str) -> str:
    """NEARFIELD_ALGORITHM that forces rows of these names (several: they are tried) wherever there are such."""
    having = {op: [name for name in names if name in found] for op, found in rows().items()}
    return ";".join(f"{op}:{','.join(found)}" for op, found in having.items() if found)


@contextlib.contextmanager
def made_or_skip(made: AbstractContextManager[Made]) -> Iterator[Made]:
    """Nodes or Slurm, or a skipped test that says why there are none."""
    with contextlib.ExitStack() as stack:
        try:
            ready = stack.enter_context(made)
        except Unavailable as why:
            pytest.skip(str(why))
        yield ready


def program(host: str, source: str, *arguments: str) -> list[str]:
    """The command line of one of the programs here, compiled for the host."""
    return [compile_c(host, str(PROGRAMS / source)), *arguments]
