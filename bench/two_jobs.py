"""Two jobs of one program at once on the same CPUs, plain and under Nearfield, in turns.

    python bench/two_jobs.py [HOSTS] [APPLICATIONS] [RANKS] [RUNS]

For each host and application of bench/apps.py: seconds from the start of both jobs to the end of the later one
(median over the runs, 5 by default), and of one job alone. The jobs know nothing of each other; no rank is bound.
"""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

from bench.apps import APPS
from nearfield.hosts import find_hosts, launch_command, launcher_environment, parse_hosts

LIMIT = 600  # seconds, of a run
# So long that a job's start is a small part: points a side, loops.
WORK = {"stencil": (256, 20000), "mesh": (8, 40), "fft": (32, 400), "matmul": (1024, 20), "training": (8, 60)}


def seconds(command: list[str], env: dict[str, str], jobs: int) -> float:
    """Returns the seconds from the start of `jobs` jobs to the end of the last. Raises RuntimeError if one fails."""
    start = time.monotonic()
    running = [
        subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for _ in range(jobs)
    ]
    errors = [job.communicate(timeout=LIMIT)[1] for job in running]
    if any(job.returncode for job in running):
        raise RuntimeError("\n".join(errors)[-2000:])
    return time.monotonic() - start


def main() -> None:
    """Prints a line for each host and application."""
    given = [*sys.argv[1:], *("mpich,openmpi,impi", "stencil,mesh,fft", "2", "5")[len(sys.argv) - 1 :]]
    ranks, runs = int(given[2]), int(given[3])
    print("host      application   alone: plain  Nearfield   two jobs: plain  Nearfield  ratio")
    for name in parse_hosts(given[0]):
        host = find_hosts()[name]
        for app in given[1].split(","):
            points, loops = WORK[app]
            command = launch_command(host, ranks, APPS[app].command(host, points, loops, APPS[app].forms[0]))
            ways = [(jobs, nearfield) for jobs in (1, 2) for nearfield in (False, True)]
            taken: dict[tuple[int, bool], list[float]] = {way: [] for way in ways}
            for run in range(runs):
                for way in ways if run % 2 == 0 else reversed(ways):
                    taken[way].append(seconds(command, launcher_environment(host, way[1]), way[0]))
            alone, alone_ours, two, two_ours = (median(taken[way]) for way in ways)
            print(
                f"{name:9} {app:11} {alone:13.2f} {alone_ours:10.2f} {two:17.2f} {two_ours:10.2f} {two_ours / two:6.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
