"""A distributed 3-D FFT: slabs, transposed by Alltoall; forward and back until the loops are done.

The error after each loop is agreed by Allreduce, as a solver would check convergence. Prints a checksum of the bits
of the last spectrum and the time of the loops.
"""

from __future__ import annotations

import argparse
import hashlib

import numpy as np
from mpi4py import MPI


def transpose(comm: MPI.Comm, slab: np.ndarray) -> np.ndarray:
    """Exchanges the first two axes of an array distributed over the first: (n/p, n, m) to (n/p, n, m)."""
    p = comm.size
    rows, n, m = slab.shape
    blocks = np.ascontiguousarray(slab.reshape(rows, p, n // p, m).transpose(1, 2, 0, 3))
    received = np.empty_like(blocks)
    comm.Alltoall(blocks, received)
    return np.ascontiguousarray(received.transpose(1, 0, 2, 3).reshape(n // p, n, m))


def forward(comm: MPI.Comm, slab: np.ndarray) -> np.ndarray:
    """The spectrum of a field, distributed over its second axis."""
    return np.fft.fft(transpose(comm, np.fft.fft2(slab, axes=(1, 2))), axis=1)


def backward(comm: MPI.Comm, spectrum: np.ndarray) -> np.ndarray:
    """The field of a spectrum."""
    return np.fft.ifft2(transpose(comm, np.fft.ifft(spectrum, axis=1)), axes=(1, 2))


def main() -> None:
    """Runs the loops."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--size", type=int, default=96, help="points a side; a multiple of the number of ranks"
    )
    parser.add_argument("--loops", type=int, default=5)
    arguments = parser.parse_args()
    comm = MPI.COMM_WORLD
    n, p = arguments.size, comm.size
    if n % p:
        raise SystemExit(f"{n} points do not divide among {p} ranks")
    generator = np.random.default_rng(comm.rank)
    original = generator.standard_normal((n // p, n, n)) + 1j * generator.standard_normal((n // p, n, n))
    field = original.copy()
    comm.Barrier()
    start = MPI.Wtime()
    for _ in range(arguments.loops):
        spectrum = forward(comm, field)
        field = backward(comm, spectrum)
        error = np.array([np.abs(field - original).max()])
        comm.Allreduce(MPI.IN_PLACE, error, MPI.MAX)
    seconds = MPI.Wtime() - start
    everything = np.empty((p, *spectrum.shape), spectrum.dtype) if comm.rank == 0 else None
    comm.Gather(spectrum, everything, root=0)
    if comm.rank == 0:
        print(f"error: {error[0]:.3e}")
        print(f"checksum: {hashlib.sha256(everything.tobytes()).hexdigest()}")
        print(f"seconds: {seconds:.6f}")


main()
