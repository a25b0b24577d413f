"""Collectives of one group of ranks: heads by the collective itself, as records of RECORD bytes, so that one call exchanges them all.

Parts of a broadcast are broadcast. Those of other collectives are messages on a communicator that mpi4py keeps for this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from pickle import loads
from typing import Any

from mpi4py import MPI
from mpi4py.MPI import _commctx_intra
from mpi4py.util import pkl5

from nearfield.mpi4py.messages import Comm, received
from nearfield.mpi4py.packing import MARK, Buffer, filled, loaded, opened, packed, pieces

RECORD = 1024  # bytes of an object's head
# Bytes of a buffer that are copied into the pickle. A head is too long for more, and has a part anyway.
INSIDE = 16 << 10


def _next(parts: Iterator[Buffer], lengths: Sequence[int]) -> list[Buffer]:
    """Those of a rank's own object."""
    return list(islice(parts, len(lengths)))


def _copies(parts: Iterator[Buffer], lengths: Sequence[int]) -> list[Buffer]:
    """The same in memory of their own."""
    copies = [MPI.buffer.allocate(length) for length in lengths]
    for copy, part in zip(copies, parts):
        copy[:] = part
    return copies


class Intracomm(Comm, pkl5.Intracomm):
    """Collectives."""

    @cached_property
    def _apart(self) -> MPI.Intracomm:
        """Where parts are messages; all ranks make it when they first ask for it."""
        return _commctx_intra(self)[0]

    def bcast(self, obj: Any, root: int = 0) -> Any:
        """The root's object. To the root itself come its own buffers, as from pkl5."""
        if self.Get_rank() == root:
            record, parts = packed(obj, RECORD, INSIDE)
            MPI.Comm.Bcast(self, record.ljust(RECORD), root)
            if not record.startswith(MARK):
                return loads(record)
            for piece in pieces(parts):
                MPI.Comm.Bcast(self, piece, root)
            return loaded(record, partial(_next, iter(parts)))
        record = bytearray(RECORD)
        MPI.Comm.Bcast(self, record, root)
        if not record.startswith(MARK):
            return loads(record)
        return loaded(record, partial(filled, lambda piece: MPI.Comm.Bcast(self, piece, root)))

    def gather(self, sendobj: Any, root: int = 0) -> list | None:
        """The objects of all ranks, at the root."""
        record, parts = packed(sendobj, RECORD, INSIDE)
        sources = range(self.Get_size()) if self.Get_rank() == root else ()
        records = bytearray(RECORD * len(sources))
        MPI.Comm.Gather(self, record.ljust(RECORD), records if sources else None, root)
        return self._exchanged({root: parts} if parts else {}, sources, records) or None

    def scatter(self, sendobj: Iterable[Any] | None, root: int = 0) -> Any:
        """This rank's of the root's objects."""
        records, outgoing = self._packed_for_each(sendobj) if self.Get_rank() == root else (None, {})
        record = bytearray(RECORD)
        MPI.Comm.Scatter(self, records, record, root)
        return self._exchanged(outgoing, (root,), record)[0]

    def allgather(self, sendobj: Any) -> list:
        """The objects of all ranks."""
        record, parts = packed(sendobj, RECORD, INSIDE)
        ranks = range(self.Get_size())
        records = bytearray(RECORD * len(ranks))
        MPI.Comm.Allgather(self, record.ljust(RECORD), records)
        return self._exchanged(dict.fromkeys(ranks, parts) if parts else {}, ranks, records)

    def alltoall(self, sendobj: Iterable[Any] | None) -> list:
        """What each rank has for this one."""
        sent, outgoing = self._packed_for_each(sendobj)
        records = bytearray(len(sent))
        MPI.Comm.Alltoall(self, sent, records)
        return self._exchanged(outgoing, range(self.Get_size()), records)

    def _packed_for_each(self, objs: Iterable[Any] | None) -> tuple[bytes, dict[int, list[Buffer]]]:
        """The records of an object for each rank, and the parts of those that have some."""
        size = self.Get_size()
        objs = [None] * size if objs is None else list(objs)
        if len(objs) != size:
            raise ValueError(f"expecting {size} items, got {len(objs)}")
        records, outgoing = [], {}
        for rank, obj in enumerate(objs):
            record, parts = packed(obj, RECORD, INSIDE)
            records.append(record.ljust(RECORD))
            if parts:
                outgoing[rank] = parts
        return b"".join(records), outgoing

    def _exchanged(
        self, outgoing: dict[int, list[Buffer]], sources: Sequence[int], records: bytearray
    ) -> list:
        """The objects of `sources`, which have a record each, while this rank sends parts to those they are for.

        All parts have come and gone when an object cannot be loaded.
        """
        apart = self._apart
        heads = [records[start : start + RECORD] for start in range(0, len(records), RECORD)]
        if not outgoing and MARK[0] not in records[::RECORD]:
            return list(map(loads, heads))
        rank, size = self.Get_rank(), self.Get_size()
        dests = sorted(outgoing.keys() - {rank}, key=lambda dest: (dest - rank) % size)
        requests = [
            MPI.Comm.Isend(apart, piece, dest, 0) for dest in dests for piece in pieces(outgoing[dest])
        ]
        own = partial(_copies, iter(outgoing.get(rank, ())))
        come = {}
        for source, head in sorted(zip(sources, heads), key=lambda one: (rank - one[0]) % size):
            receive = own if source == rank else partial(received, apart, source, 0)
            found = opened(head, receive)
            come[source] = found, receive(found.part_lengths())
        MPI.Request.Waitall(requests)
        return [found.load(parts) for found, parts in map(come.get, sources)]


class Intercomm(Comm, pkl5.Intercomm):
    """Collectives of intercommunicators are pkl5's."""
