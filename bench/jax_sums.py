"""JAX's collectives over processes of one machine in three ways: gloo, MPI, and MPI with Nearfield.

    python bench/jax_sums.py [--ranks 2] [--host mpich] [--passes 3] [--json FILE]

The Python needs JAX (NEARFIELD_JAX_PYTHON, docs/user/jax.md). MPI is called through MPItrampoline and a wrapper that is built here
(bench/jax_wrapper.py). Jobs of the three ways alternate. Each job first checks what psum, psum_scatter, all_gather, all_to_all and
ppermute return. A row: microseconds of a jitted psum of float32, by bytes of one process.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench import jax_wrapper  # noqa: E402
from bench.pythons import first_python  # noqa: E402
from nearfield.bench import save  # noqa: E402
from nearfield.hosts import HOSTS, Host, find_hosts, launch_command, launcher_environment  # noqa: E402
from nearfield.libraries import command  # noqa: E402
from nearfield.machine import machine  # noqa: E402
from nearfield.tables import print_columns  # noqa: E402
from nearfield.values import at_least, parse_ranks  # noqa: E402

WAYS = ("gloo", "mpi", "nearfield")
SIZES = [1 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20]
LIMIT = 240  # seconds of a job
Row = dict[str, Any]

# Arguments: gloo or mpi, the coordinator's port, sizes in bytes.
PROGRAM = r"""
import functools, json, os, statistics, sys, time
own = os.environ
rank = int(own.get("PMI_RANK", own.get("OMPI_COMM_WORLD_RANK", 0)))
size = int(own.get("PMI_SIZE", own.get("OMPI_COMM_WORLD_SIZE", 1)))
import jax, numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
jax.config.update("jax_cpu_collectives_implementation", sys.argv[1])
jax.distributed.initialize(f"127.0.0.1:{sys.argv[2]}", size, rank)
mesh = Mesh(np.array(jax.devices()), ("x",))

def over_ranks(body, out):
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=out, check_vma=False))

def of_rank(r, count, kind):
    return (np.arange(count) % 5 + r).astype(kind)

def given(count, kind):
    return jax.make_array_from_process_local_data(NamedSharding(mesh, P("x")), of_rank(rank, count, kind))

def got(value):
    return np.asarray(value.addressable_data(0))

for kind in ("float32", "complex64", "int32", "int8", "bfloat16"):
    kind = np.dtype(jax.numpy.dtype(kind) if kind == "bfloat16" else kind)
    count = 12 * size
    all_of_it = [of_rank(r, count, kind) for r in range(size)]
    whole = np.sum([of_rank(r, count, int) for r in range(size)], axis=0).astype(kind)
    a, part = given(count, kind), slice(12 * rank, 12 * rank + 12)
    assert (got(over_ranks(lambda v: lax.psum(v, "x"), P())(a)) == whole).all(), kind
    assert (got(over_ranks(lambda v: lax.psum_scatter(v, "x", tiled=True), P("x"))(a)) == whole[part]).all(), kind
    assert (got(over_ranks(lambda v: lax.all_gather(v, "x", tiled=True), P())(a)) == np.concatenate(all_of_it)).all(), kind
    assert (got(over_ranks(lambda v: lax.all_to_all(v, "x", 0, 0, tiled=True), P("x"))(a))
            == np.concatenate([each[part] for each in all_of_it])).all(), kind
    ring = [(r, (r + 1) % size) for r in range(size)]
    assert (got(over_ranks(lambda v: lax.ppermute(v, "x", ring), P("x"))(a)) == all_of_it[rank - 1]).all(), kind
total = over_ranks(lambda v: lax.psum(v, "x"), P())
for length in map(int, sys.argv[3:]):
    a = given(length // 4, np.float32)
    total(a).block_until_ready()
    calls, times = max(5, min(300, 30_000_000 // length)), []
    for block in range(7):
        start = time.perf_counter()
        for _ in range(calls):
            result = total(a)
        result.block_until_ready()
        times.append((time.perf_counter() - start) / calls * 1e6)
    if rank == 0:
        print(json.dumps({"bytes": length, "us": statistics.median(times)}), flush=True)
"""


@functools.cache
def python_with_jax() -> str | None:
    """A Python that has JAX: NEARFIELD_JAX_PYTHON, or this one. None: there is none."""
    asked = "import importlib.util as u, sys; sys.exit(u.find_spec('jax') is None)"
    return first_python((os.environ.get("NEARFIELD_JAX_PYTHON"), sys.executable), asked)


def wrapper_for(host: Host, python: str, directory: Path) -> Path:
    """Builds the wrapper in `directory`, for the table in that Python's jaxlib."""
    where = subprocess.run(
        [python, "-c", "import jaxlib; print(jaxlib.__path__[0])"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return jax_wrapper.build(host, Path(where) / "libjax_common.so", directory)


def run_job(host: Host, python: str, wrapper: Path, way: str, ranks: int, sizes: list[int]) -> list[Row]:
    """One job. Raises ValueError if it fails, or if Nearfield served nothing where it should."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    carrier = "gloo" if way == "gloo" else "mpi"
    words = launch_command(host, ranks, [python, "-c", PROGRAM, carrier, str(port), *map(str, sizes)])
    if way == "nearfield":
        words = [str(command()), "run", "--stats", *words]
    env = launcher_environment(host, nearfield=False) | {
        "MPITRAMPOLINE_LIB": str(wrapper),
        "JAX_PLATFORMS": "cpu",
    }
    job = subprocess.run(words, env=env, capture_output=True, text=True, timeout=LIMIT)
    if job.returncode:
        raise ValueError(f"the job by {way} with {ranks} ranks has failed:\n{job.stdout}{job.stderr}")
    # Calls, and bytes of those that Nearfield served.
    if way == "nearfield" and not re.search(r"^ +allreduce +[1-9]\d* +[1-9]", job.stderr, re.MULTILINE):
        raise ValueError(f"Nearfield served no allreduce:\n{job.stderr}")
    return [json.loads(line) for line in job.stdout.splitlines() if line.startswith('{"bytes"')]


def measure(host: Host, python: str, counts: list[int], passes: int) -> list[Row]:
    """A row for each size and number of ranks: the medians of the three ways, in microseconds."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="nearfield-jax-") as scratch:
        wrapper = wrapper_for(host, python, Path(scratch))
        for ranks in counts:
            values: dict[int, dict[str, list[float]]] = {}
            for number in range(passes * len(WAYS)):
                way = WAYS[number % len(WAYS)]
                for each in run_job(host, python, wrapper, way, ranks, SIZES):
                    values.setdefault(each["bytes"], {}).setdefault(way, []).append(each["us"])
            for length, of in values.items():
                row: Row = {
                    "op": "psum",
                    "host": host.name,
                    "ranks": ranks,
                    "bytes": length,
                    "machine": machine(),
                }
                for way, found in of.items():
                    row |= {way: statistics.median(found), f"{way}_all": found}
                rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=parse_ranks, default="2")
    parser.add_argument("--host", choices=HOSTS, default="mpich")
    parser.add_argument("--passes", type=at_least(1), default=3)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    python = python_with_jax()
    if python is None:
        raise SystemExit("no Python here has JAX; NEARFIELD_JAX_PYTHON may name one")
    rows = measure(find_hosts()[asked.host], python, asked.ranks, int(asked.passes))
    lines = [[str(row["ranks"]), str(row["bytes"]), *(f"{row[way]:.4g}" for way in WAYS)] for row in rows]
    print_columns(("ranks", "bytes", *WAYS), lines, [None] * len(lines))
    save(rows, asked.json, None, None)


if __name__ == "__main__":
    main()
