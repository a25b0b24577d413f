"""Datatypes of equal signatures, and where the bytes of blocks lie in a buffer, in the order of the types."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from mpi4py import MPI

ORIGIN = 64  # bytes before what displacements count from
DTYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16"]


@dataclass(frozen=True)
class Kind:
    """A datatype: how many units of data an element has, and where each of its bytes lies, in the type's order."""

    type: MPI.Datatype
    units: int
    bytes: np.ndarray
    extent: int

    def span(self, count: int) -> tuple[int, int]:
        """Where the bytes of some elements begin and end."""
        return int(self.bytes.min()), int(self.bytes.max()) + 1 + (count - 1) * self.extent

    def places(self, count: int) -> np.ndarray:
        """Where all bytes of some elements lie."""
        return (np.arange(count)[:, None] * self.extent + self.bytes).ravel()


def kind(type: MPI.Datatype, units: Iterable[int], size: int) -> Kind:
    """A type whose units of `size` bytes lie at those places."""
    places = [at + np.arange(size) for at in units]
    if not type.is_predefined:
        type.Commit()
    return Kind(type, len(places), np.concatenate(places), type.extent)


@functools.cache
def basic(dtype: str) -> MPI.Datatype:
    """The predefined type of a dtype of numpy."""
    return MPI._typedict[np.dtype(dtype).char]


@functools.cache
def plain(dtype: str) -> Kind:
    """A predefined type as it is."""
    return kind(basic(dtype), [0], np.dtype(dtype).itemsize)


@functools.cache
def family(name: str) -> list[Kind]:
    """Datatypes of the same signature, but for their number of units: a dtype's, bytes', or an integer's and two floats'."""
    if name == "bytes":
        byte = MPI.BYTE
        return [
            kind(byte, [0], 1),
            kind(byte.Create_contiguous(3), [0, 1, 2], 1),
            kind(byte.Create_vector(3, 1, 2), [0, 2, 4], 1),
        ]
    if name == "mixed":
        wide = mixed(0, 12, 24)
        pair = Kind(wide.type.Create_contiguous(2).Commit(), 2, wide.places(2), 48)
        return [mixed(0, 4, 12), wide, mixed(8, 0, 12), pair]
    one, n = basic(name), np.dtype(name).itemsize
    return [
        plain(name),
        kind(one.Create_resized(0, 3 * n), [0], n),
        kind(one.Create_resized(-n, 3 * n), [0], n),
        kind(one.Create_contiguous(2), [0, n], n),
        kind(one.Create_vector(2, 1, 3), [0, 3 * n], n),
        kind(one.Create_indexed([1, 2], [3, 0]), [3 * n, 0, n], n),
        kind(one.Create_hindexed_block(1, [3 * n, -2 * n]), [3 * n, -2 * n], n),
    ]


def mixed(of_int: int, of_floats: int, extent: int) -> Kind:
    """A struct of an integer and two floats."""
    made = MPI.Datatype.Create_struct([1, 2], [of_int, of_floats], [MPI.INT, MPI.FLOAT])
    places = np.concatenate([of_int + np.arange(4), of_floats + np.arange(8)])
    return Kind(made.Create_resized(0, extent).Commit(), 1, places, extent)


FAMILIES = [*DTYPES, "f8", "f8", "bytes", "bytes", "mixed", "mixed"]


def columns(units: int, ranks: int, width: int) -> Kind:
    """A column of a matrix of doubles, `width` of them for each rank; columns of ranks lie between one another."""
    row = width * ranks * 8
    made = MPI.DOUBLE.Create_vector(units, 1, width * ranks).Create_resized(0, 8)
    return kind(made, [row * i for i in range(units)], 8)


@dataclass
class Side:
    """What one rank sends, or receives: a block per partner."""

    kinds: list[Kind]
    counts: list[int]
    displacements: list[int]  # in `steps`
    steps: list[int]  # bytes

    def places(self, block: int) -> np.ndarray:
        """Where the bytes of a block lie in the buffer."""
        at = ORIGIN + self.displacements[block] * self.steps[block]
        return at + self.kinds[block].places(self.counts[block])

    @property
    def room(self) -> int:
        """Bytes of a buffer that has it all, and something after it."""
        ends = [
            self.displacements[i] * self.steps[i] + self.kinds[i].span(self.counts[i])[1]
            for i in range(len(self.counts))
            if self.counts[i]
        ]
        return 2 * ORIGIN + max([0, *ends])


def lined_up(of: Kind, units: int, blocks: int = 1) -> Side:
    """Blocks of as many units each, one after another."""
    n, count = max(blocks, 1), units // of.units
    return Side([of] * n, [count] * n, [i * count for i in range(n)], [of.extent] * n)


def placed(draw: random.Random, kinds: list[Kind], units: list[int], in_bytes: bool) -> Side:
    """Blocks in any order and with gaps. Displacements count extents, or bytes."""
    counts = [u // k.units for u, k in zip(units, kinds, strict=False)]
    steps = [1 if in_bytes else k.extent for k in kinds]
    displacements, at = [draw.randrange(4) for _ in counts], draw.choice([0, 0, -48])
    for i in draw.sample(range(len(counts)), len(counts)):
        if counts[i]:
            begin, end = kinds[i].span(counts[i])
            grain = 8 if in_bytes else steps[i]
            first = -((begin - at) // grain) + draw.choice([0, 0, 1, 3])
            displacements[i] = first * grain // steps[i]
            at = first * grain + end
    return Side(kinds, counts, displacements, steps)


def fitting(draw: random.Random, among: list[Kind], units: Iterable[int]) -> Kind:
    """A type that all of these blocks are whole numbers of."""
    return draw.choice([one for one in among if not any(u % one.units for u in units)])


def many(draw: random.Random, among: list[Kind], units: list[int], each: bool) -> Side:
    """Blocks of one type, or each of its own."""
    if each:
        kinds = [fitting(draw, among, [u]) for u in units]
        return placed(draw, kinds or among[:1], units, in_bytes=True)
    return placed(draw, [fitting(draw, among, units)] * max(len(units), 1), units, in_bytes=False)


def places_of_array(sizes: list[int], own: list[list[int]], order: int) -> list[int]:
    """Where the elements of an array lie whose indices in each dimension are `own`, in the order of subarrays and darrays."""
    if order == MPI.ORDER_FORTRAN:
        sizes, own = sizes[::-1], own[::-1]
    places = [0]
    for size, indices in zip(sizes, own, strict=True):
        places = [place * size + index for place in places for index in indices]
    return places


def distributed(draw: random.Random) -> tuple[list[int], list[int], list[int], list[int]]:
    """Of one dimension of a distributed array: size, kind, argument and processes; and which indices each process has."""
    size, processes = draw.randrange(1, 8), draw.randrange(1, 4)
    sort = draw.choice([MPI.DISTRIBUTE_NONE, MPI.DISTRIBUTE_BLOCK, MPI.DISTRIBUTE_CYCLIC])
    given = draw.random() < 0.5 and sort != MPI.DISTRIBUTE_NONE
    if sort == MPI.DISTRIBUTE_NONE:
        processes = 1
    block = -(-size // processes) + (draw.randrange(3) if given else 0)
    if sort == MPI.DISTRIBUTE_CYCLIC:
        block = draw.randrange(1, 4) if given else 1
    own = [[i for i in range(size) if i // block % processes == rank] for rank in range(processes)]
    return [size, sort, block if given else MPI.DISTRIBUTE_DFLT_DARG, processes], own


def derived(draw: random.Random, inner: MPI.Datatype, at: list[int]) -> tuple[MPI.Datatype, list[int]]:
    """A type of a random constructor, and where its integers lie, of one whose integers lie at those places."""
    n, length, extent = draw.randrange(1, 5), draw.randrange(1, 4), inner.extent
    counts, steps = [draw.randrange(4) for _ in range(n)], [draw.randrange(-3, 7) + 4 * i for i in range(n)]
    far, order = (
        [4 * draw.randrange(-20, 40) for _ in range(n)],
        draw.choice([MPI.ORDER_C, MPI.ORDER_FORTRAN]),
    )
    how = draw.randrange(11)
    stride = draw.randrange(-5, 7) * (extent if how == 1 else 4)

    def blocks(starts: list[int], lengths: list[int]) -> list[int]:
        whole = zip(starts, lengths, strict=True)
        return [start + k * extent + i for start, length in whole for k in range(length) for i in at]

    if how == 0:
        return inner.Create_contiguous(length), blocks([0], [length])
    if how in (1, 2):
        make = inner.Create_vector if how == 1 else inner.Create_hvector
        made = make(n, length, stride // extent if how == 1 and extent else stride if how == 2 else 0)
        return made, blocks([i * stride for i in range(n)], [length] * n)
    if how == 3:
        return inner.Create_indexed(counts, steps), blocks([step * extent for step in steps], counts)
    if how == 4:
        return inner.Create_hindexed(counts, far), blocks(far, counts)
    if how == 5:
        starts = [step * extent for step in steps]
        return inner.Create_indexed_block(length, steps), blocks(starts, [length] * n)
    if how == 6:
        return inner.Create_hindexed_block(length, far), blocks(far, [length] * n)
    if how == 7:
        types = [MPI.INT if i % 2 else inner for i in range(n)]
        ints = [[start + 4 * k for k in range(counts[i])] for i, start in enumerate(far)]
        each = [ints[i] if i % 2 else blocks([far[i]], [counts[i]]) for i in range(n)]
        return MPI.Datatype.Create_struct(counts, far, types), sum(each, [])
    if how == 8:
        sizes = [draw.randrange(1, 6) for _ in range(draw.randrange(1, 4))]
        parts = [draw.randrange(1, size + 1) for size in sizes]
        first = [draw.randrange(size - part + 1) for size, part in zip(sizes, parts, strict=True)]
        own = [list(range(a, a + part)) for a, part in zip(first, parts, strict=True)]
        starts = [place * extent for place in places_of_array(sizes, own, order)]
        return inner.Create_subarray(sizes, parts, first, order), blocks(starts, [1] * len(starts))
    if how == 9:
        dimensions = [distributed(draw) for _ in range(draw.randrange(1, 4))]
        sizes, sorts, arguments, grid = (list(one) for one in zip(*(d for d, _ in dimensions), strict=True))
        rank = draw.randrange(int(np.prod(grid)))
        own = [of[i] for (_, of), i in zip(dimensions, np.unravel_index(rank, grid), strict=True)]
        starts = [place * extent for place in places_of_array(sizes, own, order)]
        try:
            made = inner.Create_darray(int(np.prod(grid)), rank, sizes, sorts, arguments, grid, order)
        except MPI.Exception:  # hosts refuse some that are empty
            return inner.Dup(), at
        return made, blocks(starts, [1] * len(starts))
    return inner.Create_resized(4 * draw.randrange(-8, 3), 4 * draw.randrange(40)), at


def nested(draw: random.Random) -> list[Kind]:
    """A type of constructors in constructors, three deep, and others of its signature. The integers of one element lie apart, and
    behind each other those of the next."""
    while True:
        type, at = MPI.INT.Dup(), [0]
        for _ in range(3):
            inner, (type, at) = type, derived(draw, type, at)
            inner.Free()
        if at and len(set(at)) == len(at) <= 300 and max(at) - min(at) < 20000:
            break
        type.Free()
    low, gap = min(at), 4 * draw.choice([0, 0, 5])
    moved = type.Create_hindexed([1], [-low])
    made = moved.Create_resized(0, max(at) - low + 4 + gap)
    for one in (type, moved):
        one.Free()
    places = np.concatenate([one - low + np.arange(4) for one in at])
    kinds = [(MPI.INT.Create_contiguous(len(at)), np.arange(4 * len(at)))]
    kinds += [(made.Create_contiguous(2), np.concatenate([places, places + made.extent])), (made, places)]
    return [Kind(one.Commit(), len(bytes) // (4 * len(at)), bytes, one.extent) for one, bytes in kinds]


def at_address(type: MPI.Datatype, address: int) -> MPI.Datatype:
    """The type as it is used from MPI_BOTTOM."""
    there = type.Create_hindexed([1], [address])
    made = there.Create_resized(address + type.lb, type.extent)
    there.Free()
    return made.Commit()


def lengths(draw: random.Random, among: list[Kind], partners: int) -> Callable[[], int]:
    """Draws units of a block: nothing, little, up to 100 KiB, or around a boundary between algorithms, 1 MiB at most in all, and
    8 MiB with the gaps of sparse types."""
    size, spread = len(among[0].bytes) // among[0].units, max(one.extent // one.units for one in among)
    longest, step = draw.choice([1, 3, 3, 40, 40, 700, 700, 100 * 1024 // size // 6]), draw.choice([1, 6, 6])
    if draw.random() < 0.3:
        longest, step = draw.choice([511, 512, 513, 1024, 4096, 4097, 8192, 8193, 20000, 65537, 140000]), 1
    longest = min(longest, (1 << 20) // size // partners, (8 << 20) // max(spread, 1) // partners)
    return lambda: step * draw.choice([0, 1, draw.randrange(longest + 1), longest])
