"""Forces every row of every collective at several lengths, on memory that peers reach; prints what ran."""

from __future__ import annotations

import ctypes

import numpy as np
from mpi4py import MPI
from operations import ALGORITHMS  # ranks run this file as a script: its directory is searched

COMM = MPI.COMM_WORLD.Dup()
P, ME = COMM.size, COMM.rank
LENGTHS = [1, 48, 1000, 20000]  # doubles of a block
served = ctypes.CDLL(None).nearfield_last_algorithm
served.restype = ctypes.c_char_p


def array(length: int, value: float) -> np.ndarray:
    """Memory that every rank reaches."""
    memory = np.frombuffer(MPI.Alloc_mem(max(length, 1) * 8), "f8")[:length]
    memory[:] = value
    return memory


def call(op: str, n: int) -> None:
    """One call, its result checked."""
    one, all_ = array(n, ME + 1), array(n * P, -1)
    sums, ranks = P * (P + 1) / 2, np.repeat(np.arange(1, P + 1), n)
    if op == "barrier":
        COMM.Barrier()
    elif op == "bcast":
        COMM.Bcast(one, P - 1)
        assert (one == P).all()
    elif op == "reduce":
        COMM.Reduce(one, all_[:n], root=P - 1)
        assert ME != P - 1 or (all_[:n] == sums).all()
    elif op == "allreduce":
        COMM.Allreduce(one, all_[:n])
        assert (all_[:n] == sums).all()
    elif op == "allgather":
        COMM.Allgather(one, all_)
        assert (all_ == ranks).all()
    elif op == "gather":
        COMM.Gather(one, all_, root=0)
        assert ME != 0 or (all_ == ranks).all()
    elif op == "scatter":
        all_[:] = ranks
        COMM.Scatter(all_, one, root=P - 1)
        assert (one == ME + 1).all()
    elif op == "alltoall":
        out = array(n * P, ME + 1)
        COMM.Alltoall(out, all_)
        assert (all_ == ranks).all()
    elif op == "scan":
        COMM.Scan(one, all_[:n])
        assert (all_[:n] == (ME + 1) * (ME + 2) / 2).all()
    elif op == "exscan":
        COMM.Exscan(one, all_[:n])
        assert (all_[:n] == (ME * (ME + 1) / 2 if ME else -1)).all()
    elif op == "reduce_scatter":
        counts = np.full(P, n)
        counts[0], counts[-1] = n // 3, 2 * n - n // 3
        all_[:] = ME + 1
        mine = array(counts[ME], 0)
        COMM.Reduce_scatter(all_, mine, counts)
        assert (mine == sums).all()
    else:
        assert op == "reduce_scatter_block", f"no call for {op}"
        all_[:] = ME + 1
        COMM.Reduce_scatter_block(all_, one)
        assert (one == sums).all()


def main() -> None:
    """Every row at every length."""
    for op, rows in ALGORITHMS.items():
        for row in rows:
            info = MPI.Info.Create({"nearfield_algorithm": f"{op}:{row}"})
            COMM.Set_info(info)
            info.Free()
            ran = 0
            for n in LENGTHS:
                call(op, n)
                by = served().decode()
                assert by != "host", f"{op} of {n} went to the host"
                ran += by == row
            if ME == 0:
                print(f"{op}:{row} ran {ran}", flush=True)


main()
