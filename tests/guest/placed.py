"""Running programs/placed.c in a guest, and reading what the kernel and Nearfield's statistics said to it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from nearfield.statistics import VARIABLE, parse_statistics
from tests.guest.guest import Guest
from tests.mpi.jobs import Completed, compile_c

PROGRAM = Path(__file__).parent / "programs/placed.c"
PAGE = 4096
MIB = 1 << 20
RANKS = 4
# Rank n on CPU n, so that ranks have their sockets; each host's own words for that.
PINNED = {"mpich": ("-bind-to", "user:0,1,2,3"), "openmpi": ()}


@dataclass(frozen=True)
class Counts:
    """Bytes of a component in rank 0's statistics."""

    asked: int
    placed: int
    elsewhere: int
    unknown: int


@dataclass
class Lies:
    """What a job said."""

    completed: Completed
    pages: dict[str, list[dict[int, dict[int | str, int]]]] = field(default_factory=dict)
    errors: dict[str, dict[int, str]] = field(default_factory=dict)
    counts: dict[str, Counts] = field(default_factory=dict)

    def of(self, what: str, time: int = 0) -> dict[int, dict[int | str, int]]:
        """Pages on each node, by rank, of the given occurrence of an action; those of no node count as "absent"."""
        return self.pages[what][time]


def run(
    guest: Guest,
    *actions: str | int,
    memory: str = "",
    ranks: int = RANKS,
    host: str = "mpich",
    good: bool = True,
) -> Lies:
    """Runs the program's actions under Nearfield with NEARFIELD_MEMORY=`memory`; the job has to end well if `good`."""
    env = {VARIABLE: "/tmp/%r.json"} | ({"NEARFIELD_MEMORY": memory} if memory else {})
    program = [compile_c(host, str(PROGRAM)), *map(str, actions)]
    completed = guest.launch(host, ranks, program, env, options=PINNED[host])
    assert not completed.timed_out, completed.text[-3000:]
    assert completed.returncode == 0 or not good, completed.text[-3000:]
    written = guest.run(["sh", "-c", "cat /tmp/0.json; rm -f /tmp/*.json"], timeout=30)
    if written.stdout:  # a job that fails writes none
        completed.statistics = [parse_statistics(written.stdout)]
    return read(completed)


def read(completed: Completed) -> Lies:
    """Sorts out the lines of a job."""
    found = Lies(completed)
    for line in completed.stdout.splitlines():
        if error := re.match(r"rank (\d+) (\S+) error (.*)", line):
            found.errors.setdefault(error[2], {})[int(error[1])] = error[3]
        elif told := re.match(r"rank (\d+) (\S+)((?: \S+=\d+)*)$", line):
            rank, what = int(told[1]), told[2]
            pages = {
                int(where[4:]) if where.startswith("node") else where: int(count)
                for where, count in (word.split("=") for word in told[3].split())
            }
            times = found.pages.setdefault(what, [])
            if not times or rank in times[-1]:  # a barrier is between two actions
                times.append({})
            times[-1][rank] = pages
    for rank in completed.statistics:
        found.counts = {
            name: Counts(one.asked, one.placed, one.elsewhere, one.unknown)
            for name, one in rank.memory.items()
            if one.wish or one.asked
        }
    return found


def pages(count: int) -> int:
    """Pages that hold so many bytes."""
    return -(-count // PAGE)
