"""What a process finds out about the MPI job in which a launcher has started it, before any MPI is loaded."""

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
    """The figures of the network on the first rank of each node, None on all others; every rank of the job has to call.

    Keys are nodes, lanes (ranks per node that sent at once) and the net_... of a machine. The plain host is measured.
    Raises ValueError where the job has one node, and where it fails.
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
