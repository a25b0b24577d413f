"""A distributed 3-D FFT in pencils, forward and back until the loops are done.

Ranks form a grid; each has whole lines of one axis. Two transposes, each an Alltoall among the ranks of a row or of a column
of the grid, bring the other axes together (the 1-D transforms are numpy's pocketfft). The error after each loop is agreed
by Allreduce, as a solver would check convergence.

Prints the error, a checksum of the bits of the last spectrum, and per loop the wall time, the CPU time of all ranks,
their time in MPI, on average and at most, and all ranks' calls and bytes sent (loops.py).
"""

from __future__ import annotations

import argparse
import hashlib

import loops
import numpy as np
from mpi4py import MPI


class Pencils:
    """The grid of ranks and its two communicators; the clock `mpi` sums the time in MPI."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        rows, columns = MPI.Compute_dims(comm.size, 2)
        self.grid = comm.Create_cart((rows, columns))
        self.column = self.grid.Sub((True, False))
        self.row = self.grid.Sub((False, True))
        self.shape = (rows, columns)
        self.mpi = loops.Clock()

    def exchange(self, comm: MPI.Intracomm, blocks: np.ndarray) -> np.ndarray:
        """Alltoall of blocks[r], each for rank r of `comm`."""
        received = np.empty_like(blocks)
        with self.mpi.call(blocks.nbytes):
            comm.Alltoall(blocks, received)
        return received

    def gather_axis(self, comm: MPI.Intracomm, a: np.ndarray, whole: int, split: int) -> np.ndarray:
        """Transposes among `comm`: axis `split` of `a` comes together, axis `whole` is divided instead."""
        parts = np.stack(np.split(a, comm.size, axis=whole))
        return np.concatenate(list(self.exchange(comm, parts)), axis=split)

    def forward(self, a: np.ndarray) -> np.ndarray:
        """The spectrum of a field of shape (n/rows, n/columns, n); its shape is (n, n/rows, n/columns)."""
        a = np.fft.fft(a, axis=2)
        a = np.fft.fft(self.gather_axis(self.row, a, 2, 1), axis=1)
        return np.fft.fft(self.gather_axis(self.column, a, 1, 0), axis=0)

    def backward(self, a: np.ndarray) -> np.ndarray:
        """The field of a spectrum."""
        a = np.fft.ifft(a, axis=0)
        a = np.fft.ifft(self.gather_axis(self.column, a, 0, 1), axis=1)
        return np.fft.ifft(self.gather_axis(self.row, a, 1, 2), axis=2)


def main() -> None:
    """Runs the loops."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=96, help="points a side; a multiple of the grid's sides")
    parser.add_argument("--loops", type=int, default=5)
    arguments = parser.parse_args()
    comm = MPI.COMM_WORLD
    n = arguments.size
    pencils = Pencils(comm)
    rows, columns = pencils.shape
    if n % rows or n % columns:
        raise SystemExit(f"{n} points do not divide among {rows} x {columns} ranks")
    generator = np.random.default_rng(comm.rank)
    shape = (n // rows, n // columns, n)
    original = generator.standard_normal(shape) + 1j * generator.standard_normal(shape)
    field = pencils.backward(pencils.forward(original))  # the first loop warms up
    error = np.array([np.abs(field - original).max()])
    spectrum = None

    def there_and_back() -> None:
        nonlocal field, spectrum
        spectrum = pencils.forward(field)
        field = pencils.backward(spectrum)
        error[0] = np.abs(field - original).max()
        with pencils.mpi.call(error.nbytes):
            comm.Allreduce(MPI.IN_PLACE, error, MPI.MAX)

    figures = loops.measure(comm, pencils.mpi, arguments.loops, there_and_back)
    everything = np.empty((comm.size, *spectrum.shape), spectrum.dtype) if comm.rank == 0 else None
    comm.Gather(spectrum, everything, root=0)
    if comm.rank == 0:
        loops.report(error[0], hashlib.sha256(everything.tobytes()).hexdigest(), figures)


if __name__ == "__main__":
    main()
