"""Random MPI programs (tests/mpi/oracle/programs.py): from seeds of the clock until one fails, or one again.

    python -m tests.mpi.fuzz [--host HOST] [--ranks N] [--seed SEED] [--steps N] [--seconds N] [--plain]

`--plain`: the host without Nearfield, which tells its faults from ours.
"""

from __future__ import annotations

import argparse
import time

from tests.mpi.resident import Jobs

STEPS = 250  # of a program, at most


def play(
    jobs: Jobs, host: str, ranks: int, seed: int, steps: int, seconds: float, plain: bool = False
) -> None:
    """One program; raises where it is wrong, or hangs, and says how it is run again."""
    again = (
        f"python -m tests.mpi.fuzz --host {host} --ranks {ranks} --seed {seed}{' --plain' if plain else ''}"
    )
    print(again, flush=True)
    job = jobs(host, ranks, nearfield=not plain)
    limits = {"seconds": seconds, "timeout": min(seconds, 60) + 60}
    try:
        job.run("oracle.programs:walk", seed=seed, steps=steps, left="anything", **limits)
    except AssertionError as error:
        raise AssertionError(f"{again}\n{error}") from None


def search(jobs: Jobs, host: str, ranks: int, seconds: float, plain: bool = False) -> None:
    """Programs until the time is over."""
    seed, end = time.time_ns() // 1000 % 10**9, time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        play(jobs, host, ranks, seed, STEPS, left, plain)
        seed += 1


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="mpich")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--plain", action="store_true")
    given = parser.parse_args()
    jobs = Jobs()
    if given.seed:
        play(jobs, given.host, given.ranks, given.seed, given.steps, 600, given.plain)
    else:
        search(jobs, given.host, given.ranks, given.seconds, given.plain)
    jobs.end()


if __name__ == "__main__":
    main()
