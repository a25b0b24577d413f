"""One collective call as workers make it: guarded buffers, what ranks contribute, what has to come out.

Runs in ranks, below mpi4py; workers find it in their own directory or by PYTHONPATH.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
from mpi4py import MPI

TYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16"]
SHAPES = ["plain", "plain", "resized", "vector", "indexed"]
SHIFTS = [0, 0, 1, 3, 32]  # of a buffer's first byte
GUARD = 64
TAKES = np.uint8
REDUCTIONS = ("reduce", "allreduce", "reduce_scatter_block", "reduce_scatter", "scan", "exscan")
GATHERS, SCATTERS = ("allgather", "gather"), ("scatter", "reduce_scatter_block", "reduce_scatter")


def served() -> str:
    """The algorithm of the last collective call, `host` where Nearfield is not loaded."""
    try:
        last = ctypes.CDLL(None).nearfield_last_algorithm
    except AttributeError:
        return "host"
    last.restype = ctypes.c_char_p
    return last().decode()


def hint(comm: MPI.Intracomm, **hints: str) -> None:
    """Sets hints on a communicator, collectively."""
    info = MPI.Info.Create({key.replace("__", "_"): value for key, value in hints.items()})
    try:
        comm.Set_info(info)
    finally:
        info.Free()


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
        elements = self.data.reshape(-1, self.dtype.itemsize)
        return bool((outside == 0xA5).all() and (self.stride == 1 or (elements[1::2] == 0xA5).all()))

    def free(self) -> None:
        """Releases datatype and memory."""
        if self.type != self.base:
            self.type.Free()
        if self.memory is not None:
            self.raw = self.data = None  # type: ignore[assignment]
            MPI.Free_mem(self.memory)


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
        elif operation == MPI.PROD:
            result = result * part
        elif operation == MPI.MIN:
            result = np.where(part < result, part, result)
        elif operation == MPI.MAX:
            result = np.where(result < part, part, result)
        elif operation == MPI.LXOR:
            result = ((result != 0) != (part != 0)).astype(part.dtype)
        elif operation == MPI.BOR:
            result = result | part
        else:
            result = composed(result, part)
    return result


def composed(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Elementwise x -> a x + b after another, `a` and `b` the halves of a word: associative, but the order counts."""
    a, b, c, d = first >> 16, first & 0xFFFF, second >> 16, second & 0xFFFF
    return ((a * c & 0xFFFF) << 16 | (a * d + b & 0xFFFF)).astype("u4")


def _compose(a: MPI.buffer, b: MPI.buffer, _datatype: MPI.Datatype) -> None:
    x, y = np.frombuffer(a, "u4"), np.frombuffer(b, "u4")
    y[:] = composed(x, y)


COMPOSED = MPI.Op.Create(_compose, commute=False)


@dataclass
class Call:
    """A collective of `count` elements in a vector or block on a communicator."""

    op: str
    comm: MPI.Intracomm
    dtype: str
    count: int
    root: int
    operation: MPI.Op
    in_place: bool

    @property
    def parts(self) -> list[int]:
        """What each rank gets of reduce_scatter: unequal parts of as many elements as equal ones would have."""
        whole, rest = self.count * self.comm.size, self.root % 3
        if rest == 0:
            return [self.count] * self.comm.size
        cuts = [
            (whole * (r * r + self.root)) // (self.comm.size**2 + self.root) for r in range(self.comm.size)
        ]
        cuts = [0, *cuts[1:], whole] if rest == 1 else [0] * (self.comm.size - 1) + [whole // 3, whole]
        return [end - begin for begin, end in zip(cuts, cuts[1:], strict=False)]

    @property
    def own(self) -> slice:
        """Where this rank's block, or its part, lies in what all have given."""
        me, count = self.comm.rank, self.count
        if self.op == "reduce_scatter":
            return slice(sum(self.parts[:me]), sum(self.parts[: me + 1]))
        return slice(me * count, (me + 1) * count)

    @property
    def sends(self) -> int:
        """Elements of the send buffer."""
        return self.count * (self.comm.size if self.op == "alltoall" or self.op in SCATTERS else 1)

    @property
    def receives(self) -> int:
        """Elements of the receive buffer, which in place is the send buffer as well."""
        gets = self.count * (self.comm.size if self.op == "alltoall" or self.op in GATHERS else 1)
        if self.op == "reduce_scatter":
            gets = self.parts[self.comm.rank]
        return max(gets, self.sends) if self.in_place else gets

    def contribution(self, rank: int, seed: int) -> np.ndarray:
        """What a rank sends."""
        values = contribution(self.dtype, self.sends, rank, seed)
        composes = self.op in REDUCTIONS and self.operation == COMPOSED
        return values * 0x1_0003 + 0x3_0001 if composes else values

    def make(self, values: np.ndarray, send: Buffer, recv: Buffer) -> np.ndarray:
        """Puts what the rank contributes where it belongs, calls, and reads what has come out."""
        name, comm, count, root, in_place = self.op, self.comm, self.count, self.root, self.in_place
        me = comm.rank
        send.put(values)
        recv.put(np.zeros(recv.count, self.dtype))
        if name == "barrier":
            comm.Barrier()
        elif name == "bcast":
            comm.Bcast(send.spec(), root)
            return send.get()
        elif name == "reduce":
            if in_place and me == root:
                recv.put(values)
                comm.Reduce(MPI.IN_PLACE, recv.spec(), self.operation, root)
            else:
                comm.Reduce(send.spec(), recv.spec() if me == root else None, self.operation, root)
        elif name in ("allreduce", "scan", "exscan"):
            if in_place:
                recv.put(values)
            function = {"allreduce": comm.Allreduce, "scan": comm.Scan, "exscan": comm.Exscan}[name]
            function(MPI.IN_PLACE if in_place else send.spec(), recv.spec(), self.operation)
            if name == "exscan" and me == 0:
                return np.zeros(0, self.dtype)  # undefined
        elif name in GATHERS:
            everybody = name == "allgather"
            if in_place and (everybody or me == root):
                whole = np.zeros(recv.count, self.dtype)
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
        elif name == "reduce_scatter":
            if in_place:
                recv.put(values)
            source = MPI.IN_PLACE if in_place else send.spec()
            comm.Reduce_scatter(source, recv.spec(), self.parts, self.operation)
        else:
            assert name == "reduce_scatter_block", f"no call for {name}"
            if in_place:
                recv.put(values)
            comm.Reduce_scatter_block(
                MPI.IN_PLACE if in_place else send.spec(count), recv.spec(count), self.operation
            )
        result = recv.get()
        if name in ("reduce_scatter_block", "reduce_scatter"):
            return result[: self.own.stop - self.own.start]
        return result

    def gives(self, parts: list[np.ndarray]) -> np.ndarray | None:
        """What `make` has to return at this rank for the contributions of all: reductions as the left fold in rank
        order; None where the call leaves the rank nothing, or nothing that is defined.
        """
        me = self.comm.rank
        own = self.own
        if self.op in ("reduce", "gather") and me != self.root:
            return None
        if self.op == "scatter":
            return None if self.in_place and me == self.root else parts[self.root][own]
        if self.op == "bcast":
            return parts[self.root]
        if self.op in GATHERS:
            return np.concatenate(parts)
        if self.op == "alltoall":
            return np.concatenate([part[own] for part in parts])
        if self.op in ("reduce_scatter_block", "reduce_scatter"):
            return fold(self.operation, [part[own] for part in parts])
        folded = {"scan": parts[: me + 1], "exscan": parts[:me]}.get(self.op, parts)
        return fold(self.operation, folded) if folded and self.op in REDUCTIONS else None
