"""The time of a job with only MPI_Init, MPI_Allreduce and MPI_Finalize, plain and by `nearfield run`.

    python bench/start.py [--ranks 1,2,5,8] [--hosts mpich,openmpi,impi] [--rounds 15] [--json FILE]

Jobs with and without Nearfield take turns. A row has the median and the quartiles of the whole command's time, of MPI_Init and of
MPI_Finalize on rank 0, in milliseconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from nearfield.bench import save  # noqa: E402
from nearfield.hosts import (  # noqa: E402
    Host,
    find_hosts,
    launch_command,
    launcher_environment,
    parse_hosts,
    tool_of,
)
from nearfield.libraries import command  # noqa: E402
from nearfield.machine import machine  # noqa: E402
from nearfield.tables import print_columns  # noqa: E402
from nearfield.values import at_least, parse_ranks  # noqa: E402

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <time.h>
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * t.tv_sec + 1e-6 * t.tv_nsec;
}
int main(int argc, char** argv) {
  const double before = now();
  MPI_Init(&argc, &argv);
  const double started = now();
  int rank, one = 1, sum;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  const double ending = now();
  MPI_Finalize();
  if (rank == 0) printf("{\"init\": %.3f, \"finalize\": %.3f}\n", started - before, now() - ending);
  return 0;
}
"""
LIMIT = 120  # seconds of a job
Row = dict[str, Any]


def compile_program(host: Host, directory: Path) -> Path:
    """The program, built by the host's own compiler wrapper."""
    source, program = directory / "start.c", directory / f"start-{host.name}"
    source.write_text(PROGRAM)
    env = launcher_environment(host, nearfield=False)
    subprocess.run([tool_of(host, "mpicc"), "-O2", source, "-o", program], env=env, check=True, timeout=LIMIT)
    return program


def run(host: Host, ranks: int, program: Path, nearfield: bool) -> dict[str, float]:
    """Runs one job. Returns its times in milliseconds. Raises ValueError if it fails."""
    launcher = launch_command(host, ranks, [str(program)])
    begin = time.perf_counter()
    job = subprocess.run(
        [str(command()), "run", *launcher] if nearfield else launcher,
        env=launcher_environment(host, nearfield=False),  # `nearfield run` loads Nearfield
        stdout=subprocess.PIPE,
        text=True,
        timeout=LIMIT,
    )
    whole = time.perf_counter() - begin
    if job.returncode:
        raise ValueError(f"a job of {ranks} ranks has failed")
    return {"whole": 1e3 * whole, **json.loads(job.stdout)}


def run_start_bench(names: list[str], ranks: list[int], rounds: int) -> list[Row]:
    """A row for each host and number of ranks, with and without Nearfield."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as directory:
        for name in names:
            host = find_hosts()[name]
            program = compile_program(host, Path(directory))
            for count in ranks:
                jobs = [run(host, count, program, bool(number % 2)) for number in range(2 * rounds)]
                for mode, those in (("plain", jobs[::2]), ("nearfield", jobs[1::2])):
                    row: Row = {"op": "start", "host": name, "ranks": count, "mode": mode}
                    for part in those[0]:
                        low, middle, high = statistics.quantiles([job[part] for job in those], n=4)
                        row |= {
                            f"{part}_ms": round(middle, 2),
                            f"{part}_quartiles_ms": [round(low, 2), round(high, 2)],
                        }
                    rows.append(row | {"machine": machine()})
    return rows


def show(rows: list[Row]) -> None:
    """A table, in milliseconds."""
    titles = ("MPI", "ranks", "plain", "Nearfield", "more", "MPI_Init", "with", "MPI_Finalize", "with")
    lines = [
        [
            plain["host"],
            str(plain["ranks"]),
            *(f"{row['whole_ms']:.1f}" for row in (plain, ours)),
            f"{ours['whole_ms'] - plain['whole_ms']:+.1f}",
            *(f"{row[f'{part}_ms']:.1f}" for part in ("init", "finalize") for row in (plain, ours)),
        ]
        for plain, ours in (rows[at : at + 2] for at in range(0, len(rows), 2))
    ]
    print_columns(titles, lines, [None] * len(lines))


def main() -> None:
    """Measures, shows and writes what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=parse_ranks, default="1,2,5,8")
    parser.add_argument("--hosts", type=parse_hosts, default="mpich,openmpi,impi")
    parser.add_argument("--rounds", type=at_least(2), default=15, help="jobs of each cell, with and without")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    rows = run_start_bench(asked.hosts, asked.ranks, asked.rounds)
    show(rows)
    save(rows, asked.json, None, None)


if __name__ == "__main__":
    main()
