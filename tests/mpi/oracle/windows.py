"""What one-sided programs move and what has to come of it: types, operators and layouts, each with its truth in numpy.

Runs in ranks, below mpi4py.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from mpi4py import MPI


def pair(value: str, itemsize: int) -> np.dtype:
    """A value and an int as C lays them out."""
    size = np.dtype(value).itemsize
    return np.dtype(
        {"names": ["v", "i"], "formats": [value, "i4"], "offsets": [0, max(size, 4)], "itemsize": itemsize}
    )


@dataclass(frozen=True)
class Basic:
    """A predefined datatype; `kind` says which operators it knows."""

    name: str
    dtype: np.dtype
    kind: str

    @property
    def mpi(self) -> MPI.Datatype:
        return getattr(MPI, self.name, MPI.DATATYPE_NULL)

    @property
    def size(self) -> int:
        """Bytes from one element to the next."""
        return self.dtype.itemsize

    def significant(self) -> np.ndarray:
        """Which of an element's bytes are not padding."""
        mask = np.zeros(self.size, bool)
        if self.kind == "pair":
            mask[: 10 if self.name.startswith("LONG_DOUBLE") else self.dtype["v"].itemsize] = True
            mask[self.dtype.fields["i"][1] : self.dtype.fields["i"][1] + 4] = True
        elif self.dtype.char in "gG" and self.size % 16 == 0:  # 80 bits in 16 bytes
            mask.reshape(-1, 16)[:, :10] = True
        else:
            mask[:] = True
        return mask

    def values(self, rng: random.Random, count: int) -> np.ndarray:
        """Values whose sums, products and extremes are exact in any order; none is a zero that could be negative."""
        out = np.zeros(count, self.dtype)
        seeded = np.random.default_rng(rng.getrandbits(32))
        if self.kind == "pair":
            out["v"], out["i"] = seeded.integers(1, 4, count), seeded.integers(0, 50, count)
        elif self.kind == "logical":
            out[:] = seeded.integers(0, 2, count)
        elif self.kind == "complex":
            out[:] = seeded.choice([1, -1, 1j, 2], count)
        elif self.kind == "floating":
            out[:] = seeded.choice([1, -1, 2, -3], count)
        else:
            out[:] = seeded.choice([0, 1, 1, 2, 5], count)
        out.view(np.uint8).reshape(count, self.size)[:, ~self.significant()] = 0  # the same on all ranks
        return out


INTEGERS = [("SIGNED_CHAR", "i1"), ("SHORT", "i2"), ("INT", "i4"), ("LONG", "i8"), ("LONG_LONG", "i8")]
INTEGERS += [("UNSIGNED_CHAR", "u1"), ("UNSIGNED_SHORT", "u2"), ("UNSIGNED", "u4"), ("UNSIGNED_LONG", "u8")]
INTEGERS += [
    (f"{sign}INT{8 * n}_T", f"{'u' if sign else 'i'}{n}") for sign in ("U", "") for n in (1, 2, 4, 8)
]
INTEGERS += [("UNSIGNED_LONG_LONG", "u8")]
FORTRAN = [("INTEGER", "i4"), ("INTEGER1", "i1"), ("INTEGER2", "i2"), ("INTEGER4", "i4"), ("INTEGER8", "i8")]
FORTRAN += [("AINT", "i8"), ("OFFSET", "i8"), ("COUNT", "i8")]  # of all languages, with the same operators
FLOATING = [("FLOAT", "f4"), ("DOUBLE", "f8"), ("LONG_DOUBLE", "g"), ("REAL", "f4"), ("REAL4", "f4")]
FLOATING += [("REAL8", "f8"), ("DOUBLE_PRECISION", "f8")]
COMPLEX = [("C_FLOAT_COMPLEX", "c8"), ("C_DOUBLE_COMPLEX", "c16"), ("C_LONG_DOUBLE_COMPLEX", "G")]
COMPLEX += [("COMPLEX", "c8"), ("DOUBLE_COMPLEX", "c16"), ("COMPLEX8", "c8"), ("COMPLEX16", "c16")]
LOGICAL = [("C_BOOL", "u1"), ("CXX_BOOL", "u1"), ("LOGICAL", "u4")]
BYTES = [("BYTE", "u1")]
OPAQUE = [("CHAR", "u1"), ("WCHAR", "u4"), ("CHARACTER", "u1")]
PAIRS = [("FLOAT_INT", "f4", 8), ("DOUBLE_INT", "f8", 16), ("LONG_INT", "i8", 16), ("TWOINT", "i4", 8)]
# Not SHORT_INT, of which MPICH 5.0 fetches, and Open MPI 5.0 combines, too little; nor LONG_DOUBLE_INT, of which MPICH 5.0
# fetches long arrays wrongly.
KINDS = {
    "integer": INTEGERS,
    "fortran": FORTRAN,
    "floating": FLOATING,
    "complex": COMPLEX,
    "logical": LOGICAL,
    "byte": BYTES,
}
BASICS = [Basic(name, np.dtype(code), kind) for kind, rows in KINDS.items() for name, code in rows]
BASICS += [Basic(name, np.dtype(code), "opaque") for name, code in OPAQUE]
BASICS += [Basic(name, pair(code, size), "pair") for name, code, size in PAIRS]
BASICS = [b for b in BASICS if b.mpi != MPI.DATATYPE_NULL and b.mpi.Get_extent()[1] == b.size]

ORDERED, ARITHMETIC = ["MAX", "MIN"], ["SUM", "PROD"]
LOGIC, BITWISE = ["LAND", "LOR", "LXOR"], ["BAND", "BOR", "BXOR"]
OPERATORS = {
    "integer": ORDERED + ARITHMETIC + LOGIC + BITWISE,
    "fortran": ORDERED + ARITHMETIC + BITWISE,
    "floating": ORDERED + ARITHMETIC,
    "complex": ARITHMETIC,
    "logical": LOGIC,
    "byte": BITWISE,
    "opaque": [],
    "pair": ["MINLOC", "MAXLOC"],
}
if MPI.Get_library_version().startswith(
    "Open MPI"
):  # whose 5.0 leaves single integers, and the last of pairs with gaps
    OPERATORS |= {"integer": ORDERED + ARITHMETIC, "fortran": ORDERED + ARITHMETIC, "logical": []}
    BASICS = [b for b in BASICS if b.kind != "pair" or b.significant().all()]
# Of what kinds MPI_Compare_and_swap takes one element. MPICH 5.0 refuses MPI_LOGICAL, which the standard allows.
SWAPPED = [b for b in BASICS if b.kind in ("integer", "fortran", "logical", "byte") and b.name != "LOGICAL"]


def combine(operator: str, there: np.ndarray, given: np.ndarray) -> np.ndarray:
    """What an accumulate leaves at the target."""
    if operator in ("MINLOC", "MAXLOC"):
        better = given["v"] < there["v"] if operator == "MINLOC" else given["v"] > there["v"]
        tie = (given["v"] == there["v"]) & (given["i"] < there["i"])
        out = there.copy()  # with its padding, which numpy.where would take out
        out[better | tie] = given[better | tie]
        return out
    functions: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
        "MAX": np.maximum,
        "MIN": np.minimum,
        "SUM": np.add,
        "PROD": np.multiply,
        "LAND": lambda a, b: (a != 0) & (b != 0),
        "LOR": lambda a, b: (a != 0) | (b != 0),
        "LXOR": lambda a, b: (a != 0) != (b != 0),
        "BAND": np.bitwise_and,
        "BOR": np.bitwise_or,
        "BXOR": np.bitwise_xor,
        "REPLACE": lambda a, b: b,
        "NO_OP": lambda a, b: a,
    }
    return functions[operator](there, given).astype(there.dtype)


@dataclass
class Layout:
    """`count` elements of a datatype that may be derived; `offsets` are those of its basic elements, in its order."""

    count: int
    offsets: np.ndarray
    lengths: np.ndarray  # bytes of each element
    make: Callable[[], MPI.Datatype]
    derived: bool = True

    @property
    def span(self) -> int:
        """Bytes from the buffer's address to behind the last element."""
        return int((self.offsets + self.lengths).max()) if len(self.offsets) else 0

    @property
    def places(self) -> np.ndarray:
        """Every byte's offset, in the order in which bytes travel."""
        if not len(self.offsets):
            return np.zeros(0, np.int64)
        starts = np.repeat(self.offsets, self.lengths)
        ends = np.cumsum(self.lengths)
        return starts + np.arange(ends[-1]) - np.repeat(ends - self.lengths, self.lengths)


def committed(datatype: MPI.Datatype, *intermediate: MPI.Datatype) -> MPI.Datatype:
    """Commits the one, frees the others."""
    for other in intermediate:
        other.Free()
    return datatype.Commit()


def elements(
    basic: Basic, count: int, places: list[int] | np.ndarray, make: Callable, derived: bool
) -> Layout:
    """A layout of `basic` elements, `places` in units of its size."""
    offsets = np.asarray(places, np.int64) * basic.size
    return Layout(count, offsets, np.full(len(offsets), basic.size), make, derived)


def layout(rng: random.Random, basic: Basic, n: int, shapes: int = 8) -> Layout:
    """A random layout of `n` elements; the first of the `shapes` is the plain one."""
    shape = rng.randrange(shapes) if n else rng.choice([0, 1])
    size = basic.size
    if shape == 1:  # resized
        gap = rng.randrange(1, 4)
        return elements(
            basic, n, np.arange(n) * gap, lambda: committed(basic.mpi.Create_resized(0, gap * size)), True
        )
    if shape == 2:  # some vectors
        block, blocks, gap = rng.randrange(1, 5), rng.randrange(1, 6), rng.randrange(3)
        count, rest = divmod(n, block * blocks)
        if count and not rest:
            stride = block + gap
            one = (np.arange(blocks)[:, None] * stride + np.arange(block)).ravel()
            extent = (blocks - 1) * stride + block
            places = (np.arange(count)[:, None] * extent + one).ravel()
            return elements(
                basic, count, places, lambda: committed(basic.mpi.Create_vector(blocks, block, stride)), True
            )
    if shape in (3, 4):  # indexed blocks, forwards or in any order
        lengths = cut(rng, n)
        starts = np.cumsum([0, *[length + rng.randrange(3) for length in lengths]])[:-1] + rng.randrange(3)
        order = list(range(len(lengths)))
        if shape == 4:
            rng.shuffle(order)
        lengths, starts = [lengths[k] for k in order], [int(starts[k]) for k in order]
        places = np.concatenate([np.arange(s, s + k) for s, k in zip(starts, lengths, strict=True)])
        return elements(basic, 1, places, lambda: committed(basic.mpi.Create_indexed(lengths, starts)), True)
    if shape == 5:  # a vector of rows in bytes
        row = next((k for k in (7, 5, 4, 3, 2) if n % k == 0), 1)
        stride = row + rng.randrange(3)
        places = (np.arange(n // row)[:, None] * stride + np.arange(row)).ravel()

        def rows() -> MPI.Datatype:
            inner = basic.mpi.Create_contiguous(row)
            return committed(inner.Create_hvector(n // row, 1, stride * size), inner)

        return elements(basic, 1, places, rows, True)
    if shape == 6:  # a subarray of two dimensions
        row = next((k for k in (6, 5, 4, 3, 2) if n % k == 0), 1)
        lines, x, y = n // row, rng.randrange(3), rng.randrange(2)
        width = row + x + rng.randrange(2)
        places = ((np.arange(lines)[:, None] + y) * width + x + np.arange(row)).ravel()
        whole, part, start = [lines + y, width], [lines, row], [y, x]
        return elements(
            basic, 1, places, lambda: committed(basic.mpi.Create_subarray(whole, part, start)), True
        )
    return elements(basic, n, np.arange(n), lambda: basic.mpi, False)


def cut(rng: random.Random, n: int) -> list[int]:
    """Lengths, at most 12, that sum to n."""
    cuts = sorted(rng.sample(range(1, n), min(n - 1, rng.randrange(12)))) if n > 1 else []
    return [b - a for a, b in zip([0, *cuts], [*cuts, n], strict=True)]


def structs(rng: random.Random, members: list[Basic], count: int) -> Layout:
    """`count` structs of the members, in their order, with random gaps, sometimes from the last in memory to the first."""
    at, starts = rng.randrange(3), []
    for member in members if (forwards := rng.random() < 0.7) else members[::-1]:
        starts.append(at)
        at += member.size + rng.choice([0, 0, 1, 5])
    starts = starts if forwards else starts[::-1]
    extent = at + rng.randrange(8)
    offsets = (np.arange(count)[:, None] * extent + np.array(starts)).ravel()

    def make() -> MPI.Datatype:
        types = [member.mpi for member in members]
        inner = MPI.Datatype.Create_struct([1] * len(members), starts, types)
        return committed(inner.Create_resized(0, extent), inner)

    return Layout(count, offsets, np.tile([member.size for member in members], count), make)


def reachable(edges: list[tuple[bytes, bytes]], start: bytes, end: bytes) -> bool:
    """Whether some order of the steps `edges`, each used once, leads from `start` to `end`."""
    out: dict[bytes, list[bytes]] = {}
    balance = {start: -1}
    balance[end] = balance.get(end, 0) + 1
    for a, b in edges:
        out.setdefault(a, []).append(b)
        balance[a] = balance.get(a, 0) + 1
        balance[b] = balance.get(b, 0) - 1
    if any(balance.values()):
        return False
    seen, stack = {start}, [start]
    while stack:
        for b in out.get(stack.pop(), []):
            if b not in seen:
                seen.add(b)
                stack.append(b)
    return all(a in seen for a in out)
