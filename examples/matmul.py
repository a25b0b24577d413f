"""A distributed product of matrices, C = A B, of n x n doubles on a grid of ranks.

Rank (i, j) has block (i, j) of all three; neither need n be a multiple of the grid's sides nor the grid be square. The forms:

    bcast      SUMMA: panel after panel of A goes to the ranks of a row, of B to those of a column, which add its product
    allgather  the row's blocks of A and the column's of B are gathered, then multiplied at once
    allreduce  the inner dimension is cut into layers of ranks (2.5D; as many as there are ranks unless told otherwise),
               each a grid that multiplies its share as allgather does; the layers' products are summed, and all have C

Entries are small integers made from their places: sums are exact in any order, and rank 0 compares rows of C, bit by bit, with
those that it computes alone. Prints the error, a checksum of C, and per product the wall time, the CPU time of all ranks,
their time in MPI, on average and at most, and all ranks' calls and bytes sent (loops.py).
"""

from __future__ import annotations

import argparse
import hashlib
from bisect import bisect_right
from itertools import pairwise

import loops
import numpy as np
from mpi4py import MPI

FORMS = ("bcast", "allgather", "allreduce")
ROWS_CHECKED = 512  # at most, spread over the matrix
A, B = 1, 2


def entries(matrix: int, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The entries of A or B at these places (shapes broadcast): integers from -15 to 15 without a pattern."""
    mixed = rows.astype(np.uint32) * np.uint32(0x9E3779B1) ^ columns.astype(np.uint32) * np.uint32(0x85EBCA77)
    mixed = (mixed ^ mixed >> 15) * np.uint32(0x2C1B3C6D + 2 * matrix)
    return ((mixed ^ mixed >> 12) % 31).astype(np.float64) - 15


def cut(start: int, end: int, parts: int) -> list[int]:
    """The edges of the parts of start..end: all of one size, but that the last ones may be smaller or empty."""
    size = -(-(end - start) // parts)
    return [min(start + size * i, end) for i in range(parts + 1)]


def padded(block: np.ndarray, edges: list[int]) -> np.ndarray:
    """A block with as many rows as the first part has, so that all ranks gather blocks of one size."""
    whole = np.zeros((edges[1] - edges[0], block.shape[1]))
    whole[: len(block)] = block
    return whole


class Product:
    """The blocks of a rank and the communicators of its row, its column and its place in all layers."""

    def __init__(self, comm: MPI.Intracomm, n: int, form: str, width: int = 256, layers: int = 0) -> None:
        """`width`: of a panel, at most; `layers`: of the form allreduce, 0 for as many as there are ranks."""
        layers = (layers or comm.size) if form == "allreduce" else 1
        if comm.size % layers:
            raise ValueError(f"{comm.size} ranks are not {layers} equal layers")
        rows, columns = MPI.Compute_dims(comm.size // layers, 2)
        self.comm, self.n, self.form = comm, n, form
        self.mpi = loops.Clock()
        grid = comm.Create_cart((layers, rows, columns))
        self.depth, self.column, self.row = (
            grid.Sub([axis == kept for axis in range(3)]) for kept in range(3)
        )
        layer, row, column = grid.coords
        self.rows = slice(*cut(0, n, rows)[row : row + 2])
        self.columns = slice(*cut(0, n, columns)[column : column + 2])
        inner = cut(0, n, layers)[layer : layer + 2]
        self.across = cut(*inner, columns)  # A's blocks along a row
        self.down = cut(*inner, rows)  # B's along a column
        i, j = np.r_[self.rows], np.r_[self.columns]
        # A is kept transposed: the columns of a panel then lie together, as the rows of B do.
        a_inner = np.r_[slice(*self.across[column : column + 2])][:, None]
        b_inner = np.r_[slice(*self.down[row : row + 2])][:, None]
        self.a = padded(entries(A, i, a_inner), self.across)
        self.b = padded(entries(B, b_inner, j), self.down)
        self.c = np.empty((len(i), len(j)))
        depths = len(self.a) * columns, len(self.b) * rows
        if form == "bcast":
            self.panels = [
                (k, min(k + width, end))
                for start, end in pairwise(sorted({*self.across, *self.down}))
                for k in range(start, end, width)
            ]
            self.added = np.empty_like(self.c)
            depths = width, width
        self.a_room, self.b_room = np.empty((depths[0], len(i))), np.empty((depths[1], len(j)))

    def multiply(self) -> None:
        """Computes C."""
        if self.form == "bcast":
            self.c[:] = 0
            for k, end in self.panels:
                a = self.broadcast(self.row, self.a, self.across, self.a_room, k, end)
                b = self.broadcast(self.column, self.b, self.down, self.b_room, k, end)
                self.c += np.dot(a.T, b, out=self.added)
            return
        a = self.gather(self.row, self.a, self.across, self.a_room)
        b = self.gather(self.column, self.b, self.down, self.b_room)
        np.dot(a.T, b, out=self.c)
        if self.depth.size > 1:
            with self.mpi.call(self.c.nbytes):
                self.depth.Allreduce(MPI.IN_PLACE, self.c)

    def broadcast(
        self, comm: MPI.Intracomm, block: np.ndarray, edges: list[int], room: np.ndarray, k: int, end: int
    ) -> np.ndarray:
        """Rows k..end of what the members of `comm` have together, `block` being this rank's, cut at `edges`."""
        owner = bisect_right(edges, k) - 1
        first = edges[owner]
        panel = block[k - first : end - first] if comm.rank == owner else room[: end - k]
        with self.mpi.call(panel.nbytes if comm.rank == owner else 0):
            comm.Bcast(panel, owner)
        return panel

    def gather(
        self, comm: MPI.Intracomm, block: np.ndarray, edges: list[int], room: np.ndarray
    ) -> np.ndarray:
        """All that the members of `comm` have together, `block` being this rank's, cut at `edges`."""
        if comm.size == 1:
            return block
        with self.mpi.call(block.nbytes):
            comm.Allgather(block, room)
        return room[: edges[-1] - edges[0]]

    def check(self) -> tuple[float, str] | None:
        """On rank 0 the largest error of the rows that are checked, on any rank that has them, and a checksum of C."""
        blocks = self.comm.gather((self.rows, self.columns, self.c))
        if blocks is None:
            return None
        product, everything = np.empty((self.n, self.n)), np.arange(self.n)
        checked = np.unique(np.linspace(0, self.n - 1, min(self.n, ROWS_CHECKED)).astype(int))
        a = entries(A, checked[:, None], everything)
        alone = a @ entries(B, everything[:, None], everything)
        errors = [0.0]
        for rows, columns, block in blocks:
            product[rows, columns] = block
            here = (rows.start <= checked) & (checked < rows.stop)
            difference = block[checked[here] - rows.start] - alone[here, columns]
            errors.append(np.abs(difference).max(initial=0.0))
        return float(np.max(errors)), hashlib.sha256(product.tobytes()).hexdigest()


def main() -> None:
    """Runs the loops."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=1024, help="rows and columns")
    parser.add_argument("--loops", type=int, default=5)
    parser.add_argument("--form", choices=FORMS, default="bcast")
    parser.add_argument("--panel", type=int, default=256, help="bcast: columns of A and rows of B in a panel")
    parser.add_argument("--layers", type=int, default=0, help="allreduce: divides the ranks; 0: all of them")
    arguments = parser.parse_args()
    comm = MPI.COMM_WORLD
    product = Product(comm, arguments.size, arguments.form, arguments.panel, arguments.layers)
    product.multiply()  # warms up
    figures = loops.measure(comm, product.mpi, arguments.loops, product.multiply)
    if checked := product.check():
        loops.report(*checked, figures)
        if checked[0]:
            raise SystemExit(f"C is wrong by up to {checked[0]:g}")


if __name__ == "__main__":
    main()
