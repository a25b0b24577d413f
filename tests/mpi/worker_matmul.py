"""Products of examples/matmul.py in all forms and against numpy's: each rank's block, and that a wrong one is found."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import matmul  # noqa: E402
import numpy as np  # noqa: E402
from mpi4py import MPI  # noqa: E402

comm = MPI.COMM_WORLD
layers = [n for n in range(1, comm.size + 1) if comm.size % n == 0]
cases = [("bcast", 256, 0), ("bcast", 7, 0), ("allgather", 1, 0), *(("allreduce", 1, n) for n in layers)]
for n in (2, 48, 61):
    every = np.arange(n)
    expected = matmul.entries(matmul.A, every[:, None], every) @ matmul.entries(
        matmul.B, every[:, None], every
    )
    for form, width, parts in cases:
        product = matmul.Product(comm, n, form, width, parts)
        for _ in range(2):
            product.c[:] = np.nan
            product.multiply()
            here = expected[product.rows, product.columns]
            assert np.array_equal(product.c, here), (n, form, width, parts, comm.rank)
        assert (product.check() or (0,))[0] == 0
        if product.rows.stop == product.columns.stop == n and product.c.size:
            product.c[-1, -1] += 1
        assert (product.check() or (1,))[0] == 1
        if product.c.size and product.rows.start == product.columns.start == 0:
            product.c[0, 0] = np.nan
        assert (product.check() or (np.nan,))[0] != 1
if comm.rank == 0:
    print("good")
