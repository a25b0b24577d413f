"""Finds out in which MPI job a launcher has started this process, before any MPI is loaded."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from typing import Any

from nearfield.libraries import program, without_nearfield

# Names of rank and size by launcher, and the build of Nearfield's programs for the hosts that it starts.
LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "ompi"),
    ("PMI_RANK", "PMI_SIZE", "mpich"),
)


@dataclass(frozen=True)
class Job:
    """A job of several ranks."""

    rank: int
    size: int
    abi: str


def present_job() -> Job | None:
    """The job of which this process is a rank; None where it is alone."""
    for rank, size, abi in LAUNCHERS:
        if rank in os.environ and int(os.environ.get(size, 1)) > 1:
            return Job(int(os.environ[rank]), int(os.environ[size]), abi)
    return None


def measure_network(job: Job) -> dict[str, Any] | None:
    """Measures the network with the plain host; all ranks of the job call this. Returns its figures on the first rank of each node, else None.

    Keys are nodes, lanes (ranks of a node that sent at the same time) and the figures net_... of a machine's file.
    Raises ValueError if the job has only one node, or fails.
    """
    done = subprocess.run(
        [str(program(f"nearfield-bench-{job.abi}")), "network"],
        env=os.environ | {"LD_PRELOAD": without_nearfield(os.environ.get("LD_PRELOAD", ""))},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        close_fds=False,  # MPICH's launcher hands every rank an open one, by its number
    )
    why = done.stderr.strip()
    if done.returncode and (why or job.rank == 0):  # what all have in common the first one says
        raise ValueError(f"the network was not measured: {why}")
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[0]) if lines else None
