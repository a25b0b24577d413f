"""What travels of an object.

An object is a pickle (protocol 5) and its buffers, the memory of its arrays. What travels first is a *head*, then its *parts*:

    head                          parts
    the pickle                    none: a short object, as mpi4py itself would send it
    Parts(lengths, pickle)        short buffers, in one part, and then each long one
    Parts([length])               a head that is longer than heads may be, and then what belongs to that

Both sides know from the lengths of the buffers what the parts are. No message is longer than PIECE.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pickle import PickleBuffer, dumps, loads
from typing import Any, Callable, NamedTuple

from mpi4py import MPI

from nearfield.mpi4py.tensors import dumps_tensors

LONG = 256 << 10  # bytes from which on a buffer is a part of its own, and not copied
PIECE = 1 << 30  # bytes of a message at most; MPI-3 counts them in int
ALIGNED = 64  # bytes to which short buffers are
PROTOCOL = 5

Buffer = Any  # what has the buffer protocol
Receive = Callable[[Sequence[int]], Sequence[Buffer]]  # of parts that come next, by their lengths in bytes


class Parts(NamedTuple):
    """A head that parts follow."""

    lengths: Sequence[int]  # of the buffers, in bytes
    data: Buffer | None = None  # the pickle that they belong to; without one the only buffer is a head

    def part_lengths(self) -> list[int]:
        """Bytes of the parts."""
        _, end = _places(self.lengths)
        return [end] * (end > 0) + [length for length in self.lengths if length >= LONG]

    def load(self, parts: Sequence[Buffer]) -> Any:
        """The object. Raises what unpickling raises."""
        starts, end = _places(self.lengths)
        short = memoryview(parts[0] if end else bytearray())
        long = iter(parts[end > 0 :])
        buffers = [
            next(long) if length >= LONG else short[start : start + length]
            for start, length in zip(starts, self.lengths)
        ]
        return loads(self.data, buffers=buffers)


def _places(lengths: Iterable[int]) -> tuple[list[int], int]:
    """Where short buffers begin in the part that they share, and its length. Long and empty ones take no room in it."""
    starts, end = [], 0
    for length in lengths:
        starts.append(-(-end // ALIGNED) * ALIGNED)
        end = starts[-1] + length if 0 < length < LONG else end
    return starts, end


def _parts_of(buffers: Sequence[Buffer]) -> list[Buffer]:
    """What is sent of buffers."""
    long = [buffer for buffer in buffers if len(buffer) >= LONG]
    short = [buffer for buffer in buffers if 0 < len(buffer) < LONG]
    if len(short) > 1:
        starts, end = _places(map(len, short))
        shared = MPI.buffer.allocate(end)
        for start, buffer in zip(starts, short):
            shared[start : start + len(buffer)] = buffer
        short = [shared]
    return short + long


# Heads of parts begin so, by another letter than pickles of protocol 5. They are pickles, which mpi4py's own receive loads as well.
MARK = dumps(Parts, 0)[:-1]


def _head(buffers: Iterable[Buffer], data: bytes | None = None) -> bytes:
    return MARK + dumps(([len(buffer) for buffer in buffers], data), PROTOCOL)[:-1] + b"R."


def packed(obj: Any, longest: int, inside: int) -> tuple[bytes, list[Buffer]]:
    """The head of an object, which is at most `longest` bytes, and its parts. Raises what pickling raises.

    Buffers of up to `inside` bytes are copied into the pickle.
    """
    buffers: list[Buffer] = []

    def stays_in_the_pickle(buffer: PickleBuffer) -> bool:
        memory = buffer.raw()
        if memory.nbytes <= inside:
            return True
        buffers.append(memory)
        return False

    if "torch" in sys.modules:
        head = dumps_tensors(obj, PROTOCOL, stays_in_the_pickle)
    else:
        head = dumps(obj, PROTOCOL, buffer_callback=stays_in_the_pickle)
    if not buffers and len(head) <= longest:
        return head, buffers
    parts = _parts_of(buffers)
    if buffers:
        head = _head(buffers, head)
    if len(head) > longest:
        head, parts = _head([head]), [head, *parts]
    return head, parts


def opened(head: Buffer, receive: Receive) -> Parts:
    """What a head tells, once the heads that it stands for have been received."""
    while bytes(head[: len(MARK)]) == MARK:
        found = loads(head)
        if found.data is not None:
            return found
        (head,) = receive(found.part_lengths())
    return Parts((), head)


def loaded(head: Buffer, receive: Receive) -> Any:
    """The object, of its head and of the parts that are to be received."""
    found = opened(head, receive)
    return found.load(receive(found.part_lengths()))


def pieces(parts: Iterable[Any]) -> Iterator[memoryview]:
    """What is sent of parts, message by message."""
    for part in parts:
        for start in range(0, len(part), PIECE):
            yield memoryview(part)[start : start + PIECE]


def filled(fill: Callable[[memoryview], Any], lengths: Sequence[int]) -> list[MPI.buffer]:
    """New memory for parts, of which `fill` gets piece after piece."""
    parts = [MPI.buffer.allocate(length) for length in lengths]
    for piece in pieces(parts):
        fill(piece)
    return parts
