"""What the examples have in common: BLAS of one thread, and how loops are timed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from mpi4py import MPI

# Ranks share the CPUs already. numpy looks once, when it is loaded: examples import this module before it.
for threads in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(threads, "1")


class Clock:
    """Sums the time within `with clock:`, which a rank spends in MPI."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._start


def measure(comm: MPI.Intracomm, mpi: Clock, loops: int, step: Callable[[], None]) -> dict[str, float]:
    """Runs `step` in all ranks, `loops` times; returns figures of one loop, in seconds.

    seconds: wall time of the slowest rank; cpu: CPU time of all ranks; mpi and mpi_most: time on the clock `mpi`, waiting
    for other ranks included, on average and at most.
    """
    comm.Barrier()
    mpi.seconds = 0.0
    start, cpu = time.perf_counter(), time.process_time()
    for _ in range(loops):
        step()
    figures = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu, "mpi": mpi.seconds}
    ranks = comm.allgather(figures)
    seconds, cpu_seconds, in_mpi = ([rank[key] / loops for rank in ranks] for key in figures)
    return {
        "seconds": max(seconds),
        "cpu": sum(cpu_seconds),
        "mpi": sum(in_mpi) / comm.size,
        "mpi_most": max(in_mpi),
    }


def report(error: float, checksum: str, figures: dict[str, float]) -> None:
    """Prints the results, a line each."""
    print(f"error: {error:.3e}")
    print(f"checksum: {checksum}")
    for name, seconds in figures.items():
        print(f"{name}: {seconds:.6f}")
