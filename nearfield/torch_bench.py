"""`nearfield bench --torch`: calls and loads of PyTorch (torch_loads.py) by the backends nearfield and gloo, in turns."""

from __future__ import annotations

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

from nearfield.libraries import ROOT, with_nearfield

OPERATIONS = ("allreduce", "bcast", "allgather", "reduce_scatter", "alltoall", "barrier")
LOADS = (*OPERATIONS, "ddp", "tensor-parallel")
LIMIT = 600  # seconds of a job beyond what it measures
Row = dict[str, Any]


@functools.cache
def python_with_torch() -> str | None:
    """A Python that has PyTorch with gloo: NEARFIELD_TORCH_PYTHON, this one, or the system's. None: there is none."""
    for python in (os.environ.get("NEARFIELD_TORCH_PYTHON"), sys.executable, "/usr/bin/python3"):
        if not python or not Path(python).exists():
            continue
        asked = "import torch.distributed as d; assert d.is_available() and d.is_gloo_available()"
        if subprocess.run([python, "-c", asked], capture_output=True, timeout=120).returncode == 0:
            return python
    return None


def run_torch_bench(
    loads: Sequence[str], ranks: Sequence[int], sizes: Sequence[int], seconds: float, heap: str
) -> list[Row]:
    """A row for each load, number of ranks and size: medians and quartiles in microseconds, and the ratio.

    Raises ValueError for loads that there are not, for a Python without PyTorch, and for jobs that fail.
    """
    if wrong := [each for each in loads if each not in LOADS]:
        raise ValueError(f"--torch has no {', '.join(wrong)}; it has {', '.join(LOADS)}")
    python = python_with_torch()
    if python is None:
        raise ValueError("no Python here has PyTorch with gloo; NEARFIELD_TORCH_PYTHON may name one")
    return [
        row for count in ranks for row in _run_job(python, list(loads), count, list(sizes), seconds, heap)
    ]


def _run_job(
    python: str, loads: list[str], count: int, sizes: list[int], seconds: float, heap: str
) -> list[Row]:
    cells = sum(1 if each in ("barrier", "ddp") else len(sizes) for each in loads)
    with tempfile.TemporaryDirectory(prefix="nearfield-torch-") as scratch:
        asked = json.dumps({"store": f"{scratch}/store", "loads": loads, "sizes": sizes, "seconds": seconds})
        env = os.environ | {"PYTHONPATH": str(ROOT), "WORLD_SIZE": str(count), "OMP_NUM_THREADS": "1"}
        env["PYTHONWARNINGS"] = "ignore"
        if heap == "shared":
            env = with_nearfield(env, ("libnearfield.so", "libnearfield-heap.so"))
        words = [python, "-m", "nearfield.torch_loads", asked]
        job = [
            subprocess.Popen(
                words, env=env | {"RANK": str(r)}, stdout=None if r else subprocess.PIPE, text=True
            )
            for r in range(count)
        ]
        try:
            out, _ = job[0].communicate(timeout=LIMIT + 3 * cells * seconds)
            for each in job:
                each.wait(60)
        finally:
            for each in job:
                each.kill()
                each.wait()
    if any(each.returncode for each in job):
        raise ValueError(f"a job of {count} ranks has failed: {' '.join(words)}")
    return [_row(json.loads(line), heap) for line in out.splitlines() if line.startswith("{")]


def _row(measured: Row, heap: str) -> Row:
    row = {"op": measured["op"], "ranks": measured["ranks"], "bytes": measured["bytes"], "heap": heap}
    for name, times in measured["times"].items():
        low, middle, high = statistics.quantiles(times, n=4)
        row |= {f"{name}_us": middle, f"{name}_quartiles_us": [low, high]}
    return row | {"ratio": row["nearfield_us"] / row["gloo_us"]}


def show(rows: Sequence[Row]) -> None:
    """A table: microseconds of both, and the ratio."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="PyTorch: nearfield by gloo, below 1 is faster")
    for heading in ("operation", "ranks", "bytes", "nearfield us", "gloo us", "ratio"):
        table.add_column(heading, justify="left" if heading == "operation" else "right")
    for row in rows:
        figures = (f"{row['nearfield_us']:.1f}", f"{row['gloo_us']:.1f}", f"{row['ratio']:.3f}")
        table.add_row(row["op"], str(row["ranks"]), str(row["bytes"] or "-"), *figures)
    Console().print(table)
