"""Calls and loads of PyTorch (pytorch_loads.py) by the backends nearfield and gloo.

    python bench/pytorch.py --ranks 2,8 --op allreduce,ddp --sizes 8,64K [--seconds 1] [--heap shared] [--json FILE]

Jobs of the two alternate. They do not share a process, since gloo's sockets would leave both ranks on one CPU for nearfield: the kernel
wakes a reader on the CPU of its writer, and does not separate two ranks that each wait half of the time.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.pythons import first_python  # noqa: E402
from nearfield.bench import save  # noqa: E402
from nearfield.libraries import with_nearfield  # noqa: E402
from nearfield.tables import print_columns  # noqa: E402
from nearfield.values import at_least, parse_ranks, parse_sizes, words_of  # noqa: E402

OPERATIONS = ("allreduce", "bcast", "allgather", "reduce_scatter", "alltoall", "barrier")
LOADS = (*OPERATIONS, "ddp", "tensor-parallel")
BACKENDS = ("nearfield", "gloo")
PASSES = 2  # jobs of each
LIMIT = 600  # seconds of a job beyond what it measures
Row = dict[str, Any]


@functools.cache
def python_with_torch() -> str | None:
    """A Python that has PyTorch with gloo: NEARFIELD_TORCH_PYTHON, this one, or the system's. None: there is none."""
    asked = "import torch.distributed as d; assert d.is_available() and d.is_gloo_available()"
    return first_python((os.environ.get("NEARFIELD_TORCH_PYTHON"), sys.executable, "/usr/bin/python3"), asked)


def run_torch_bench(
    loads: Sequence[str], ranks: Sequence[int], sizes: Sequence[int], seconds: float, heap: str
) -> list[Row]:
    """A row for each load, number of ranks and size: medians and quartiles in microseconds, and the ratio.

    Raises ValueError for a Python without PyTorch, and for jobs that fail.
    """
    python = python_with_torch()
    if python is None:
        raise ValueError("no Python here has PyTorch with gloo; NEARFIELD_TORCH_PYTHON may name one")
    rows: list[Row] = []
    for count in ranks:
        times: dict[tuple[str, int], dict[str, list[float]]] = {}
        for number in range(2 * PASSES):
            backend = BACKENDS[number % 2]
            job = {
                "backend": backend,
                "loads": list(loads),
                "sizes": list(sizes),
                "seconds": seconds / PASSES,
            }
            for cell in _run_job(python, count, job, heap):
                sides = times.setdefault((cell["op"], cell["bytes"]), {name: [] for name in BACKENDS})
                sides[backend] += cell["times"]
        rows += [_row(op, count, length, sides, heap) for (op, length), sides in times.items()]
    return rows


def _run_job(python: str, count: int, asked: dict[str, Any], heap: str) -> list[Row]:
    cells = len(asked["loads"]) * len(asked["sizes"])
    with tempfile.TemporaryDirectory(prefix="nearfield-torch-") as scratch:
        env = os.environ | {"PYTHONPATH": str(ROOT), "WORLD_SIZE": str(count), "OMP_NUM_THREADS": "1"}
        env["PYTHONWARNINGS"] = "ignore"
        if heap == "shared":
            env = with_nearfield(env, ("libnearfield.so", "libnearfield-heap.so"))
        loads = str(Path(__file__).with_name("pytorch_loads.py"))
        words = [python, loads, json.dumps(asked | {"store": f"{scratch}/store"})]
        job = [
            subprocess.Popen(
                words, env=env | {"RANK": str(r)}, stdout=None if r else subprocess.PIPE, text=True
            )
            for r in range(count)
        ]
        try:
            out, _ = job[0].communicate(timeout=LIMIT + 3 * cells * asked["seconds"])
            for each in job:
                each.wait(60)
        finally:
            for each in job:
                each.kill()
                each.wait()
    if any(each.returncode for each in job):
        raise ValueError(f"a job of {count} ranks has failed: {' '.join(words)}")
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def _row(op: str, ranks: int, length: int, sides: dict[str, list[float]], heap: str) -> Row:
    row: Row = {"op": op, "ranks": ranks, "bytes": length, "heap": heap}
    for name, times in sides.items():
        low, middle, high = statistics.quantiles(times, n=4)
        row |= {f"{name}_us": middle, f"{name}_quartiles_us": [low, high]}
    return row | {"ratio": row["nearfield_us"] / row["gloo_us"]}


def show(rows: Sequence[Row]) -> None:
    """A table: microseconds of both, and the ratio."""
    print("PyTorch: nearfield by gloo, below 1 is faster")
    lines = [
        [
            *(row["op"], str(row["ranks"]), str(row["bytes"] or "-")),
            *(f"{row['nearfield_us']:.1f}", f"{row['gloo_us']:.1f}", f"{row['ratio']:.3f}"),
        ]
        for row in rows
    ]
    titles = ("operation", "ranks", "bytes", "nearfield us", "gloo us", "ratio")
    print_columns(titles, lines, [None] * len(lines))


def main() -> None:
    """Measures, shows and writes what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    loads = "ddp is a step of training, tensor-parallel a token step of inference"
    parser.add_argument("--op", type=words_of(LOADS, "load"), default=",".join(OPERATIONS), help=loads)
    parser.add_argument("--ranks", type=parse_ranks, default="2")
    parser.add_argument("--sizes", type=parse_sizes, default="8:4M")
    parser.add_argument("--seconds", type=at_least(0.0), default=1.0)
    parser.add_argument("--heap", choices=("shared", "off"), default="shared")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    try:
        rows = run_torch_bench(asked.op, asked.ranks, asked.sizes, asked.seconds, asked.heap)
    except ValueError as error:
        parser.exit(2, f"bench/pytorch.py: {error}\n")
    show(rows)
    save(rows, asked.json, None, None)


if __name__ == "__main__":
    main()
