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
    """Sums the time that a rank spends in MPI, its calls and the bytes that they send: `with clock.call(bytes): ...`."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begins anew."""
        self.seconds, self.calls, self.bytes = 0.0, 0, 0

    def call(self, sent: int = 0) -> Clock:
        """Of a call whose send buffer has so many bytes."""
        self.calls += 1
        self.bytes += sent
        return self

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._start


def measure(comm: MPI.Intracomm, mpi: Clock, loops: int, step: Callable[[], None]) -> dict[str, float]:
    """Runs `step` in all ranks, `loops` times; returns figures of one loop.

    seconds: wall time of the slowest rank; cpu: CPU time of all ranks; mpi and mpi_most: time on the clock `mpi`, waiting
    for other ranks included, on average and at most; calls and bytes: of all ranks, as counted by `mpi`.
    """
    comm.Barrier()
    mpi.reset()
    start, cpu = time.perf_counter(), time.process_time()
    for _ in range(loops):
        step()
    spent = (time.perf_counter() - start, time.process_time() - cpu, mpi.seconds, mpi.calls, mpi.bytes)
    ranks = comm.allgather(spent)
    seconds, cpu_seconds, in_mpi, calls, sent = (
        [rank[i] / loops for rank in ranks] for i in range(len(spent))
    )
    return {
        "seconds": max(seconds),
        "cpu": sum(cpu_seconds),
        "mpi": sum(in_mpi) / comm.size,
        "mpi_most": max(in_mpi),
        "calls": sum(calls),
        "bytes": sum(sent),
    }


def report(error: float, checksum: str, figures: dict[str, float]) -> None:
    """Prints the results, a line each."""
    print(f"error: {error:.3e}")
    print(f"checksum: {checksum}")
    for name, figure in figures.items():
        print(f"{name}: {figure:.6f}")
