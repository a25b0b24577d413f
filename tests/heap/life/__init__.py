"""Random process life (life.hpp): the same steps plain and with Nearfield, whose logs have to be equal line by line.

    python -m tests.heap.life [--host HOST] [--ranks N] [--seed SEED] [--steps N] [--seconds N]

Without a host there is no MPI, and the heap alone is loaded.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from pathlib import Path

from tests.mpi.jobs import HEAP, HOSTS, ROOT, Completed, command, compiled, environment, run

SOURCES = sorted(Path(__file__).parent.glob("*.cpp"))
STEPS = 150
TIMEOUT = 120  # of one run; a hundredth is enough where nothing else runs

# What differs from plain, and is documented (docs/admin.md), or not mended yet.
LEFT_OUT = {
    "own_stack": "a join of a thread whose stack is a block does not return where it forks",
    "hidden_from_children": "MADV_WIPEONFORK succeeds on what the program has mapped over a block, also where the kernel's does not",
    "few_descriptors": "a fork needs descriptors",
    "moved": "mremap of a block that a fork or madvise has split fails with EFAULT, where plain's is one mapping",
    "address_limit": "what is reserved counts",
    "little_is_left": "what is reserved does not count",
}
# The same in ranks.
LEFT_OUT_OF_RANKS: dict[str, str] = {}


def program(host: str | None) -> str:
    """The program, for a host or without MPI."""
    options = ["-O1", "-g1", "-std=gnu++20", "-D_GNU_SOURCE", "-fno-builtin", f"-I{ROOT}", *map(str, SOURCES)]
    if not host:
        return compiled("life", (*options, "-lpthread"), "g++")
    options += ["-DWITH_MPI", f"-I{HOSTS[host].include}", str(HOSTS[host].library), "-lpthread"]
    return compiled(f"life-{host}", tuple(options), "g++")


def lived(
    host: str | None, ranks: int, seed: int, steps: int, nearfield: bool, env: dict[str, str]
) -> tuple[Completed, list[list[str]]]:
    """A run, and what each rank has written."""
    with tempfile.TemporaryDirectory() as directory:
        words = [program(host), str(seed), "0", str(steps), f"{directory}/", *LEFT_OUT]
        words += LEFT_OUT_OF_RANKS if host else []
        if host:
            job = run(command(host, ranks, words), environment(host, nearfield, env), TIMEOUT)
        else:
            plain = {name: value for name, value in os.environ.items() if not name.startswith("NEARFIELD")}
            job = run(words, plain | ({"LD_PRELOAD": str(HEAP)} | env if nearfield else {}), TIMEOUT)
        paths = [Path(directory, str(rank)) for rank in range(ranks)]
        return job, [path.read_text().splitlines() if path.exists() else [] for path in paths]


def difference(host: str | None, ranks: int, seed: int, steps: int, env: dict[str, str] | None = None) -> str:
    """How a run with Nearfield differs from a plain one; empty where it does not."""
    plain, expected = lived(host, ranks, seed, steps, False, {})
    if plain.returncode:
        return (
            f"the plain run ended with {plain.returncode}, timed out {plain.timed_out}: {plain.text[-2000:]}"
        )
    job, found = lived(host, ranks, seed, steps, True, env or {})
    if (job.returncode, found) == (0, expected):
        return ""
    where = f"--host {host} --ranks {ranks} " if host else ""
    said = [f"python -m tests.heap.life {where}--seed {seed} --steps {steps}"]
    said += [f"ended with {job.returncode}, timed out {job.timed_out}"]
    for rank, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        for number, (line, plain_line) in enumerate(itertools.zip_longest(ours, theirs)):
            if line != plain_line:
                before = "".join(f"\n    {one}" for one in theirs[max(number - 3, 0) : number])
                said.append(f"rank {rank}, after{before}\n  plain:     {plain_line}\n  Nearfield: {line}")
                break
    return "\n".join([*said, job.text[-2000:]])


def search(
    host: str | None, ranks: int, seconds: float, seed: int = 0, env: dict[str, str] | None = None
) -> None:
    """Seeds from the clock, or from the one that is given, until the time is over; raises where a run differs."""
    seed, end = seed or time.time_ns() // 1000 % 10**9, time.monotonic() + seconds
    print(f"process life, {host or 'no MPI'}, from seed {seed}", flush=True)
    while True:
        wrong = difference(host, ranks, seed, STEPS, env)
        assert not wrong, wrong
        seed += 1
        if time.monotonic() > end:
            break
