"""Collective calls, each compared with the host's own result.

Arguments: seed and number of random cases, or a JSON file with a list of cases.
"""

from __future__ import annotations

import ctypes
import json
import random
import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI
from operations import ALGORITHMS, OPERATIONS  # ranks run this file as a script: its directory is searched

WORLD = MPI.COMM_WORLD
COUNTS = [0, 1, 2, 3, 6, 7, 48, 100, 511, 512, 513, 1000, 1024, 4096, 4097, 8192, 8193, 20000, 65537, 140000]
TYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16"]
GUARD = 64
SERVED = ctypes.CDLL(None).nearfield_last_algorithm
SERVED.restype = ctypes.c_char_p
TAKES = np.uint8


def hint(comm: MPI.Intracomm, **hints: str) -> None:
    """Sets hints on a communicator, collectively."""
    info = MPI.Info.Create({key.replace("__", "_"): value for key, value in hints.items()})
    comm.Set_info(info)
    info.Free()


def first_of(a, b, _datatype) -> None:
    """A user-defined operator that does not commute: the left operand wins where it is not zero."""
    x, y = np.frombuffer(a, "i4"), np.frombuffer(b, "i4")
    y[:] = np.where(x != 0, 2 * x - y, y)


USER = MPI.Op.Create(first_of, commute=False)


class Buffer:
    """Guarded memory for `count` elements of `dtype`, possibly strided by a derived type."""

    def __init__(self, dtype: str, count: int, shape: str, shift: int, allocated: bool) -> None:
        self.dtype, self.count = np.dtype(dtype), count
        self.stride = 2 if shape != "plain" else 1
        bytes_ = self.dtype.itemsize * count * self.stride + 2 * GUARD + shift
        self.memory = MPI.Alloc_mem(bytes_) if allocated else None
        self.raw = np.frombuffer(self.memory, TAKES) if allocated else np.empty(bytes_, TAKES)
        self.raw[:] = 0xA5
        start = GUARD + shift
        self.data = self.raw[start : start + self.dtype.itemsize * count * self.stride]
        self.base = MPI._typedict[self.dtype.char]
        if shape == "resized":
            self.type = self.base.Create_resized(0, 2 * self.dtype.itemsize).Commit()
        elif shape == "vector":
            vector = self.base.Create_vector(1, 1, 2)
            self.type = vector.Create_resized(0, 2 * self.dtype.itemsize).Commit()
            vector.Free()
        elif shape == "indexed":
            indexed = self.base.Create_indexed([1], [0])
            self.type = indexed.Create_resized(0, 2 * self.dtype.itemsize).Commit()
            indexed.Free()
        else:
            self.type = self.base

    def put(self, values: np.ndarray) -> None:
        """Writes the elements."""
        padded = np.frombuffer(bytes([0xA5]) * self.data.size, self.dtype).copy()
        padded[:: self.stride] = values
        self.data[:] = padded.view(TAKES)

    def get(self) -> np.ndarray:
        """Reads the elements."""
        return np.frombuffer(self.data.tobytes(), self.dtype)[:: self.stride].copy()

    def spec(self, count: int | None = None) -> list:
        """What mpi4py wants: buffer, count, datatype."""
        return [self.data, self.count if count is None else count, self.type]

    def intact(self) -> bool:
        """Whether guards and gaps still hold their pattern."""
        start = self.data.__array_interface__["data"][0] - self.raw.__array_interface__["data"][0]
        outside = np.concatenate([self.raw[:start], self.raw[start + self.data.size :]])
        gaps = np.frombuffer(self.data.tobytes(), f"V{self.dtype.itemsize}")
        pattern = bytes([0xA5]) * self.dtype.itemsize
        return bool((outside == 0xA5).all()) and (
            self.stride == 1 or all(g.tobytes() == pattern for g in gaps[1::2])
        )

    def free(self) -> None:
        """Releases datatype and memory."""
        if self.type != self.base:
            self.type.Free()
        if self.memory is not None:
            self.raw = self.data = None  # type: ignore[assignment]
            MPI.Free_mem(self.memory)


def communicators() -> list[MPI.Intracomm]:
    """Communicators of many kinds, all containing this rank."""
    size, rank = WORLD.size, WORLD.rank
    group = WORLD.group.Incl(list(reversed(range(size))))
    kinds = [WORLD, WORLD.Dup(), WORLD.Split(rank % 2, rank), WORLD.Split(rank // 3, -rank)]
    kinds.append(WORLD.Create_group(group))
    kinds.append(WORLD.Create_cart([size], [True], reorder=True))
    kinds.append(WORLD.Split_type(MPI.COMM_TYPE_SHARED))
    return kinds


def contribution(dtype: str, count: int, rank: int, seed: int) -> np.ndarray:
    """What a rank contributes; small values, so that integers do not depend on wrapping of the host."""
    generator = np.random.default_rng(seed * 1000 + rank)
    if dtype[0] in "iu":
        return generator.integers(0, 5, count).astype(dtype)
    values = generator.standard_normal(count)
    return (values + 1j * values[::-1]).astype(dtype) if dtype[0] == "c" else values.astype(dtype)


def fold(operation: MPI.Op, parts: list[np.ndarray]) -> np.ndarray:
    """The left fold in rank order, in the precision of the type."""
    result = parts[0].copy()
    for part in parts[1:]:
        if operation == MPI.SUM:
            result = result + part
        elif operation == MPI.MIN:
            result = np.where(part < result, part, result)
        elif operation == MPI.MAX:
            result = np.where(result < part, part, result)
    return result


OPERATORS = [MPI.SUM, MPI.SUM, MPI.MIN, MPI.MAX, MPI.PROD, MPI.LXOR, MPI.BOR, USER]


def random_case(draw: random.Random) -> dict:
    """What all ranks agree on; numbers are taken modulo what there is."""
    name = draw.choice(OPERATIONS)
    limit = 20 if draw.random() < 0.15 else 15
    return {
        "op": name,
        "comm": draw.randrange(64),
        "dtype": draw.choice(TYPES),
        "count": COUNTS[draw.randrange(limit)],
        "root": draw.randrange(64),
        "in_place": draw.random() < 0.3,
        "algorithm": draw.choice([None, *ALGORITHMS.get(name, [])]),
        "operator": draw.randrange(64),
    }


def run_case(case: dict, own: random.Random, comms: list[MPI.Intracomm], seed: int) -> None:
    """One call by host and Nearfield. `own` differs between ranks: layouts, alignments, kinds of memory."""
    name, dtype, count, in_place = case["op"], case["dtype"], case["count"], case["in_place"]
    forced = case["algorithm"] if case["algorithm"] in ALGORITHMS.get(name, []) else None
    comm = comms[case["comm"] % len(comms)]
    p, me = comm.size, comm.rank
    if count * p > 300000:
        count //= p
    root = case["root"] % p
    scans = name in ("scan", "exscan")
    reduction = scans or name in ("reduce", "allreduce", "reduce_scatter_block")
    operation = OPERATORS[case["operator"] % len(OPERATORS)]
    if reduction:
        if dtype[0] == "c" and operation not in (MPI.SUM, MPI.PROD):
            operation = MPI.SUM
        if dtype[0] == "f" and operation in (MPI.LXOR, MPI.BOR):
            operation = MPI.MAX
        if operation == USER:
            dtype = "i4"
    # The layout is every rank's own business, except in reductions.
    shape = "plain" if reduction else own.choice(["plain", "plain", "resized", "vector", "indexed"])
    if name in ("allgather", "alltoall", "gather", "scatter") and count == 0:
        shape = "plain"
    shift = own.choice([0, 0, 1, 3, 32])
    allocated = own.random() < 0.2
    many = name in ("allgather", "gather"), name in ("scatter", "reduce_scatter_block")
    send_count = count * p if many[1] or name == "alltoall" else count
    recv_count = count * p if many[0] or name == "alltoall" else count
    send = Buffer(dtype, send_count, shape, shift, allocated)
    recv = Buffer(dtype, max(recv_count, send_count if in_place else 0), shape, shift, allocated)
    what = f"{name} p={p} rank={me} {dtype} count={count} root={root} {operation.handle if reduction else ''} in_place={in_place} algorithm={forced} {shape} shift={shift}"

    def call() -> np.ndarray:
        values = contribution(dtype, send_count, me, seed)
        send.put(values)
        recv.put(np.zeros(recv.count, dtype))
        if name == "barrier":
            comm.Barrier()
        elif name == "bcast":
            comm.Bcast(send.spec(), root)
            return send.get()
        elif name == "reduce":
            if in_place and me == root:
                recv.put(values)
                comm.Reduce(MPI.IN_PLACE, recv.spec(), operation, root)
            else:
                comm.Reduce(send.spec(), recv.spec() if me == root else None, operation, root)
        elif name == "allreduce" or scans:
            if in_place:
                recv.put(values)
            function = {"allreduce": comm.Allreduce, "scan": comm.Scan, "exscan": comm.Exscan}[name]
            function(MPI.IN_PLACE if in_place else send.spec(), recv.spec(), operation)
            if name == "exscan" and me == 0:
                return np.zeros(0, dtype)  # undefined
        elif name in ("allgather", "gather"):
            everybody = name == "allgather"
            if in_place and (everybody or me == root):
                whole = np.zeros(recv.count, dtype)
                whole[me * count : (me + 1) * count] = values
                recv.put(whole)
                source = MPI.IN_PLACE
            else:
                source = send.spec()
            if everybody:
                comm.Allgather(source, recv.spec(count))
            else:
                comm.Gather(source, recv.spec(count) if me == root else None, root)
        elif name == "alltoall":
            if in_place:
                recv.put(values)
            comm.Alltoall(MPI.IN_PLACE if in_place else send.spec(count), recv.spec(count))
        elif name == "scatter":
            target = MPI.IN_PLACE if in_place and me == root else recv.spec(count)
            comm.Scatter(send.spec(count) if me == root else None, target, root)
        else:
            assert name == "reduce_scatter_block", f"no call for {name}"
            if in_place:
                recv.put(values)
            comm.Reduce_scatter_block(
                MPI.IN_PLACE if in_place else send.spec(count), recv.spec(count), operation
            )
        result = recv.get()
        return result[:count] if name == "reduce_scatter_block" else result

    hint(comm, nearfield="off")
    expected = call()
    hint(comm, nearfield="on", nearfield_algorithm=f"{name}:{forced}" if forced else " ")
    got = call()
    by = SERVED().decode()
    nothing_to_do = p == 1 or (count == 0 and name != "barrier")
    if not nothing_to_do:
        # Everybody's types are what they like; only operators of the user's are the host's business.
        assert (by == "host") == (reduction and operation == USER), f"{what}: {by}"
    assert send.intact(), f"{what}: wrote outside the send buffer"
    assert recv.intact(), f"{what}: wrote outside the receive buffer"
    floating = dtype[0] in "fc" and reduction
    if floating:
        np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3, err_msg=what)
        again = call()
        if operation in (MPI.SUM, MPI.MIN, MPI.MAX) and (name != "reduce" or me == root):
            ranks = {"scan": me + 1, "exscan": me}.get(name, p)
            parts = [contribution(dtype, send_count, r, seed) for r in range(ranks)]
            exact = fold(operation, parts) if parts else got
            if name == "reduce_scatter_block":
                exact = exact[me * count : (me + 1) * count]
            assert got.tobytes() == exact.tobytes(), f"{what}: not the left fold in rank order"
            assert again.tobytes() == got.tobytes(), f"{what}: differs from call to call"
    else:
        where = np.flatnonzero(got != expected)[:5]
        assert got.tobytes() == expected.tobytes(), (
            f"{what}: differs at {where}: {got[where]} {expected[where]}"
        )
    hint(comm, nearfield_algorithm=" ")
    send.free()
    recv.free()


def main() -> None:
    """Runs the cases; the first failure ends the job."""
    seed = int(sys.argv[1]) if len(sys.argv) > 2 else 0
    draw, own = random.Random(seed), random.Random(seed * 100 + WORLD.rank)
    if len(sys.argv) > 2:
        program = [random_case(draw) for _ in range(int(sys.argv[2]))]
    else:
        program = json.loads(Path(sys.argv[1]).read_text())
    cases = len(program)
    comms = communicators()
    for number, case in enumerate(program):
        try:
            run_case(case, own, comms, seed * 10000 + number)
        except AssertionError as error:
            print(f"FAILED case {number}: {error}", flush=True)
            WORLD.Abort(3)
    WORLD.Barrier()
    if WORLD.rank == 0:
        print(f"{cases} cases")


main()
