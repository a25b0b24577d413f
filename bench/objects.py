"""Objects of Python by mpi4py's own calls, by its pkl5 and by nearfield.mpi4py, on plain MPI and under Nearfield.

    python bench/objects.py --ranks 2,8 [--op bcast,messages] [--object dict,1M] [--host mpich] [--rounds 5] [--json FILE]

The three take turns in one job, and jobs with and without Nearfield take turns. A time is that of one call and of reading the received
object once, on the slowest rank; for messages, half of a round trip. A row has medians and quartiles over all calls, in microseconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from nearfield.bench import save  # noqa: E402
from nearfield.hosts import find_hosts, launch_command, launcher_environment, parse_hosts, python_of  # noqa: E402
from nearfield.machine import machine  # noqa: E402
from nearfield.tables import print_columns  # noqa: E402
from nearfield.values import at_least, parse_ranks, words_of  # noqa: E402

OPERATIONS = ("bcast", "allgather", "scatter", "alltoall", "messages")
OBJECTS = ("dict", "list", "64K", "1M", "64M", "arrays")
WAYS = ("mpi4py", "pkl5", "nearfield")
LIMIT = 900  # seconds of a job
SECONDS = 0.1  # of a way, cell and turn, at least one call
CALLS = 200  # of a way, cell and turn at most
TURNS = 3  # of each way in a job
ROOM = 1 << 30  # bytes that all ranks together may receive in a call
Row = dict[str, Any]


def object_of(kind: str) -> Any:
    """The object that is sent."""
    import numpy

    if kind == "dict":
        return {"step": 7, "loss": 0.25, "name": "of a run", "shape": (3, 4), "done": False}
    if kind == "list":
        return list(range(10_000))
    if kind == "arrays":
        return {f"array {number}": numpy.full(10_000, float(number)) for number in range(100)}
    return numpy.ones({"64K": 64 << 10, "1M": 1 << 20, "64M": 64 << 20}[kind] // 8)


def read(obj: Any) -> None:
    """Reads all arrays once."""
    if isinstance(obj, (list, tuple)) and not isinstance(obj[0], int):
        for one in obj:
            read(one)
    elif isinstance(obj, dict):
        for one in obj.values():
            read(one)
    elif hasattr(obj, "max"):
        obj.max()


def call_of(comm: Any, op: str, obj: Any) -> Callable[[], None]:
    """A call and reading what came."""
    rank, objs = comm.rank, [obj] * comm.size

    def there_and_back() -> None:
        if rank == 0:
            comm.send(obj, 1)
            read(comm.recv(None, 1))
        elif rank == 1:
            got = comm.recv(None, 0)
            read(got)
            comm.send(got, 0)

    return {
        "bcast": lambda: read(comm.bcast(obj if rank == 0 else None)),
        "allgather": lambda: read(comm.allgather(obj)),
        "scatter": lambda: read(comm.scatter(objs if rank == 0 else None)),
        "alltoall": lambda: read(comm.alltoall(objs)),
        "messages": there_and_back,
    }[op]


def measure(operations: Sequence[str], objects: Sequence[str]) -> None:
    """Runs in each rank of a job; the first rank prints a line for each operation and object."""
    import numpy
    from mpi4py import MPI
    from mpi4py.util import pkl5

    from nearfield import mpi4py as ours

    world = MPI.COMM_WORLD
    comms = {"mpi4py": world, "pkl5": pkl5.Intracomm(world), "nearfield": ours.Intracomm(world)}
    for kind in objects:
        obj = object_of(kind)
        length = 64 << 20 if kind == "64M" else 8 << 20
        for op in operations:
            if length * world.size * (1 if op in ("bcast", "scatter", "messages") else world.size) > ROOM:
                continue
            times: dict[str, list[float]] = {way: [] for way in WAYS}
            for turn in range(TURNS + 1):  # the first to become warm
                for way in WAYS:
                    call = call_of(comms[way], op, obj)
                    taken: list[float] = []
                    while world.bcast(len(taken) < CALLS and sum(taken) < SECONDS):
                        world.Barrier()
                        start = time.perf_counter()
                        call()
                        mine = numpy.array(time.perf_counter() - start)
                        slowest = numpy.empty_like(mine)
                        world.Allreduce(mine, slowest, MPI.MAX)
                        taken.append(float(slowest) * 1e6 / (2 if op == "messages" else 1))
                    if turn:
                        times[way] += taken
            if world.rank == 0:
                print(json.dumps({"op": op, "object": kind, "times": times}), flush=True)


def run(
    host: str, ranks: int, nearfield: bool, operations: Sequence[str], objects: Sequence[str]
) -> list[Row]:
    """The lines of one job. Raises ValueError for one that fails."""
    one = find_hosts()[host]
    program = [
        python_of(one),
        __file__,
        "--in-job",
        "--op",
        ",".join(operations),
        "--object",
        ",".join(objects),
    ]
    env = launcher_environment(one, nearfield) | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    env |= {} if nearfield else {"NEARFIELD": "off"}
    job = subprocess.run(
        launch_command(one, ranks, program), env=env, stdout=subprocess.PIPE, text=True, timeout=LIMIT
    )
    if job.returncode:
        raise ValueError(f"a job of {ranks} ranks has failed")
    return [json.loads(line) for line in job.stdout.splitlines() if line.startswith("{")]


def run_objects_bench(
    host: str, ranks: Sequence[int], operations: Sequence[str], objects: Sequence[str], rounds: int
) -> list[Row]:
    """A row for each operation, object and number of ranks, with and without Nearfield."""
    about = {"host": host, "machine": machine()}
    rows: list[Row] = []
    for count in ranks:
        cells: dict[tuple, dict[str, list[float]]] = {}
        for number in range(2 * rounds):
            nearfield = bool(number % 2)
            for line in run(host, count, nearfield, operations, objects):
                cell = cells.setdefault((line["op"], line["object"], nearfield), {way: [] for way in WAYS})
                for way in WAYS:
                    cell[way] += line["times"][way]
        for (op, kind, nearfield), cell in sorted(cells.items()):
            row: Row = {
                "op": op,
                "object": kind,
                "ranks": count,
                "mode": "nearfield" if nearfield else "plain",
            }
            for way, times in cell.items():
                low, middle, high = statistics.quantiles(times, n=4)
                row |= {f"{way}_us": round(middle, 2), f"{way}_quartiles_us": [round(low, 2), round(high, 2)]}
            rows.append(row | about)
    return rows


def show(rows: Sequence[Row]) -> None:
    """A table: microseconds, and ratios to mpi4py's own."""
    titles = ("operation", "object", "ranks", "MPI", *(f"{way} us" for way in WAYS), "by mpi4py", "by pkl5")
    lines = [
        [
            *(row["op"], row["object"], str(row["ranks"]), row["mode"]),
            *(f"{row[f'{way}_us']:.1f}" for way in WAYS),
            *(f"{row['nearfield_us'] / row[f'{way}_us']:.2f}" for way in WAYS[:2]),
        ]
        for row in rows
    ]
    print_columns(titles, lines, [None] * len(lines))


def main() -> None:
    """Measures, shows and writes what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--op", type=words_of(OPERATIONS, "operation"), default=",".join(OPERATIONS))
    parser.add_argument("--object", type=words_of(OBJECTS, "object"), default=",".join(OBJECTS))
    parser.add_argument("--ranks", type=parse_ranks, default="2,8")
    parser.add_argument("--host", default="mpich")
    parser.add_argument(
        "--rounds", type=at_least(1), default=3, help="jobs of each number of ranks, with and without"
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--in-job", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.in_job:
        measure(asked.op, asked.object)
        return
    try:
        (host,) = parse_hosts(asked.host)
        rows = run_objects_bench(host, asked.ranks, asked.op, asked.object, asked.rounds)
    except ValueError as error:
        parser.exit(2, f"bench/objects.py: {error}\n")
    show(rows)
    save(rows, asked.json, None, None)


if __name__ == "__main__":
    main()
