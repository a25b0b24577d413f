"""Objects of Python between ranks by mpi4py: one pickle for all receivers, and memory beside it.

    from nearfield.mpi4py import Intracomm

    comm = Intracomm(MPI.COMM_WORLD)
    table = comm.bcast(table)

The classes stand for those of mpi4py.util.pkl5, which they derive from: what is not here is mpi4py's own. docs/objects.md says what is
carried how.

An object is a pickle (protocol 5) and its buffers, the memory of its arrays. What travels first is a *head*, then its *parts*:

    head                          parts
    the pickle                    none: a short object, as mpi4py itself would send it
    Parts(lengths, pickle)        short buffers, in one part, and then each long one
    Parts([length])               a head that is longer than heads may be, and then what belongs to that

The heads of a collective are records of RECORD bytes, so that one call exchanges them all. Parts of a broadcast are broadcast; those of
other collectives are messages on a communicator that mpi4py keeps for this (`_commctx_intra`). In point to point, parts follow their head
on the same communicator by the same tag, hence locks: no other thread's message may come between them.
"""

from __future__ import annotations

import copyreg
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from pickle import PickleBuffer, Pickler, dumps, loads
from typing import Any, Callable, NamedTuple

from mpi4py import MPI
from mpi4py.MPI import ANY_SOURCE, ANY_TAG, BYTE, PROC_NULL, Status, _comm_lock, _commctx_intra
from mpi4py.util import pkl5

__all__ = ["Comm", "Intercomm", "Intracomm", "Message", "Request"]

RECORD = 1024  # bytes of the head of an object in a collective
BESIDE = 16 << 10  # bytes from which on a buffer is no longer copied into the pickle
LONG = 256 << 10  # bytes from which on it is not copied at all
PIECE = 1 << 30  # bytes of a message at most; MPI-3 counts them in int
PROTOCOL = 5
ALIGNED = 64  # bytes to which short buffers are

Buffer = Any  # what has the buffer protocol
Receive = Callable[[Sequence[int]], Sequence[Buffer]]  # of parts that come next, by their lengths in bytes


class _Parts(NamedTuple):
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
        short = memoryview(parts[0] if end else b"")
        long = iter(parts[end > 0 :])
        buffers = [
            next(long) if length >= LONG else short[start : start + length]
            for start, length in zip(starts, self.lengths)
        ]
        return loads(self.data, buffers=buffers)


def _places(lengths: Iterable[int]) -> tuple[list[int], int]:
    """Where short buffers begin in the part that they share, and its length. Long ones take no room in it."""
    starts, end = [], 0
    for length in lengths:
        starts.append(-(-end // ALIGNED) * ALIGNED)
        end = starts[-1] + length if length < LONG else end
    return starts, end


def _parts_of(buffers: Sequence[Buffer]) -> list[Buffer]:
    """What is sent of buffers."""
    long = [buffer for buffer in buffers if len(buffer) >= LONG]
    short = [buffer for buffer in buffers if len(buffer) < LONG]
    if len(short) > 1:
        starts, end = _places(map(len, short))
        shared = MPI.buffer.allocate(end)
        for start, buffer in zip(starts, short):
            shared[start : start + len(buffer)] = buffer
        short = [shared]
    return short + long


# Heads of parts begin so. They are pickles, which mpi4py's own receive loads like those of short objects.
_MARK = dumps(_Parts, 0)[:-1]


def _head(buffers: Iterable[Buffer], data: bytes | None = None) -> bytes:
    return _MARK + dumps(([len(buffer) for buffer in buffers], data), PROTOCOL)[:-1] + b"R."


def _untyped(content: Any) -> Any:
    """A storage of tensors in the buffer that came."""
    import torch

    return torch.frombuffer(content, dtype=torch.uint8).untyped_storage()


def _typed(storage: Any, dtype: Any) -> Any:
    import torch

    return torch.storage.TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


def _reduce_untyped(storage: Any) -> tuple:
    import torch

    if storage.device.type != "cpu" or not len(storage):
        return storage.__reduce_ex__(5)
    return _untyped, (PickleBuffer(torch.empty(0, dtype=torch.uint8).set_(storage).numpy()),)


def _reduce_typed(storage: Any) -> tuple:
    return _typed, (storage._untyped_storage, storage.dtype)


def _dumps_tensors(obj: Any, buffer_callback: Callable[[PickleBuffer], bool]) -> bytes:
    """pickle.dumps, by which tensors' memory is a buffer as well; PyTorch's own way is a file inside of the pickle."""
    import torch

    file = io.BytesIO()
    pickler = Pickler(file, PROTOCOL, buffer_callback=buffer_callback)
    storages = {torch.UntypedStorage: _reduce_untyped, torch.storage.TypedStorage: _reduce_typed}
    pickler.dispatch_table = {**copyreg.dispatch_table, **storages}
    pickler.dump(obj)
    return file.getvalue()


def _packed(obj: Any, longest: int) -> tuple[bytes, list[Buffer]]:
    """The head of an object, which is at most `longest` bytes, and its parts. Raises what pickling raises."""
    buffers: list[Buffer] = []

    def stays_in_the_pickle(buffer: PickleBuffer) -> bool:
        memory = buffer.raw()
        if memory.nbytes < BESIDE:
            return True
        buffers.append(memory)
        return False

    if "torch" in sys.modules:
        head = _dumps_tensors(obj, stays_in_the_pickle)
    else:
        head = dumps(obj, PROTOCOL, buffer_callback=stays_in_the_pickle)
    parts = _parts_of(buffers) if buffers else buffers
    if buffers:
        head = _head(buffers, head)
    if len(head) > longest:
        head, parts = _head([head]), [head, *parts]
    return head, parts


def _opened(head: Buffer, receive: Receive) -> _Parts:
    """What a head tells, once the heads that it stands for have been received."""
    while bytes(head[: len(_MARK)]) == _MARK:
        found = loads(head)
        if found.data is not None:
            return found
        (head,) = receive(found.part_lengths())
    return _Parts((), head)


def _loaded(head: Buffer, receive: Receive) -> Any:
    """The object, of its head and of the parts that are to be received."""
    found = _opened(head, receive)
    return found.load(receive(found.part_lengths()))


def _pieces(parts: Iterable[Any]) -> Iterator[memoryview]:
    """What is sent of parts, message by message."""
    for part in parts:
        for start in range(0, len(part), PIECE):
            yield memoryview(part)[start : start + PIECE]


def _filled(fill: Callable[[memoryview], Any], lengths: Sequence[int]) -> list[MPI.buffer]:
    """New memory for parts, of which `fill` gets piece after piece."""
    parts = [MPI.buffer.allocate(length) for length in lengths]
    for piece in _pieces(parts):
        fill(piece)
    return parts


def _received(comm: MPI.Comm, source: int, tag: int, lengths: Sequence[int]) -> list[MPI.buffer]:
    """Parts that come as messages."""
    return _filled(lambda piece: MPI.Comm.Recv(comm, piece, source, tag), lengths)


def _mprobe(comm: MPI.Comm, probe: Callable, source: int, tag: int, status: Status | None) -> Message | None:
    """An object whose messages are all matched, by MPI.Comm.Mprobe or Improbe."""
    status = Status() if status is None else status
    with _comm_lock(comm, "nearfield.receive"):
        matched = probe(comm, source, tag, status)
        if matched is None or matched == MPI.MESSAGE_NO_PROC:
            return matched and Message(matched)
        source, tag = status.Get_source(), status.Get_tag()
        head = bytearray(status.Get_elements(BYTE))
        matched.Recv(head)
        found = _opened(head, partial(_received, comm, source, tag))
        count = sum(-(-length // PIECE) for length in found.part_lengths())
        # The head has come: that of a process that there is not stands for it.
        messages = [
            MPI.Message(MPI.MESSAGE_NO_PROC),
            *(MPI.Comm.Mprobe(comm, source, tag) for _ in range(count)),
        ]
    status.Set_elements(BYTE, len(found.data) + sum(found.lengths))
    message = Message(messages)
    message._parts, message._status = found, Status(status)
    return message


def _completed(requests: Sequence[Request], complete: Callable, statuses: Any) -> tuple[bool, list | None]:
    """MPI.Request.Testall or Waitall for requests of objects: whether all are complete, and the objects that they received."""
    if isinstance(statuses, list):
        statuses += [Status() for _ in range(len(requests) - len(statuses))]
    each = None if statuses is None else [s for one, s in zip(requests, statuses) for _ in one]
    if not complete([request for one in requests for request in one], each):
        return False, None
    for one, status in zip(requests, statuses or ()):
        if one._status is not None:
            status.Set_source(one._status.Get_source())
            status.Set_tag(one._status.Get_tag())
            status.Set_elements(BYTE, one._status.Get_elements(BYTE))
    return True, [one._take() for one in requests]


class Request(pkl5.Request):
    """The requests of the messages of an object."""

    _load: Callable[[], Any] | None = None  # of one that receives, until it has been waited for
    _status: Status | None = None

    def _take(self) -> Any:
        load, self._load = self._load, None
        return load and load()

    def test(self, status: Status | None = None) -> tuple[bool, Any]:
        """Whether it is complete, and the object that it received."""
        done, objs = _completed([self], MPI.Request.Testall, None if status is None else [status])
        return done, objs and objs[0]

    def wait(self, status: Status | None = None) -> Any:
        """The object that it received, once it is complete."""
        if status is None and self._load is None:
            MPI.Request.Waitall(self)
            return None
        return _completed([self], MPI.Request.Waitall, None if status is None else [status])[1][0]

    @classmethod
    def testall(cls, requests: Sequence[Request], statuses: Any = None) -> tuple[bool, list | None]:
        """Whether all are complete, and the objects that they received."""
        return _completed(requests, MPI.Request.Testall, statuses)

    @classmethod
    def waitall(cls, requests: Sequence[Request], statuses: Any = None) -> list:
        """The objects that they received, once all are complete."""
        return _completed(requests, MPI.Request.Waitall, statuses)[1]


class Message(pkl5.Message):
    """The matched messages of an object, whose head has come."""

    _parts: _Parts | None = None
    _status: Status | None = None

    def recv(self, status: Status | None = None) -> Any:
        """The object."""
        return self.irecv().wait(status)

    def irecv(self) -> Request:
        """Begins to receive the object."""
        found = self._parts or _Parts(())
        parts = [MPI.buffer.allocate(length) for length in found.part_lengths()]
        request = Request([message.Irecv(piece) for message, piece in zip(self, (b"", *_pieces(parts)))])
        if self._parts is not None:
            request._load, request._status = partial(found.load, parts), self._status
        return request

    @classmethod
    def probe(
        cls, comm: MPI.Comm, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message:
        """Waits for an object and matches it."""
        return _mprobe(comm, MPI.Comm.Mprobe, source, tag, status)

    @classmethod
    def iprobe(
        cls, comm: MPI.Comm, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message | None:
        """Matches an object that has come; None where none has."""
        return _mprobe(comm, MPI.Comm.Improbe, source, tag, status)


class Comm(pkl5.Comm):
    """Point to point."""

    @cached_property
    def _sending(self) -> Any:
        return _comm_lock(self, "nearfield.send")

    @cached_property
    def _receiving(self) -> Any:
        return _comm_lock(self, "nearfield.receive")

    def _sent(self, send: Callable, obj: Any, dest: int, tag: int) -> list:
        """What `send` returns of each message of an object."""
        head, parts = (b"", ()) if dest == PROC_NULL else _packed(obj, PIECE)
        with self._sending:
            sent = [send(self, head, dest, tag)]
            if parts:
                sent += [send(self, piece, dest, tag) for piece in _pieces(parts)]
        return sent

    def send(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Sends in standard mode."""
        self._sent(MPI.Comm.Send, obj, dest, tag)

    def bsend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Sends in buffered mode."""
        self._sent(MPI.Comm.Bsend, obj, dest, tag)

    def ssend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Sends in synchronous mode."""
        self.issend(obj, dest, tag).wait()

    def isend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Begins to send in standard mode."""
        return Request(self._sent(MPI.Comm.Isend, obj, dest, tag))

    def ibsend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Begins to send in buffered mode."""
        return Request(self._sent(MPI.Comm.Ibsend, obj, dest, tag))

    def issend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Begins to send in synchronous mode."""
        return Request(self._sent(MPI.Comm.Issend, obj, dest, tag))

    def recv(
        self, buf: Any = None, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Any:
        """Receives; `buf` is not needed."""
        status = Status() if status is None else status
        with self._receiving:
            obj = MPI.Comm.recv(self, None, source, tag, status)
            if type(obj) is not _Parts:
                return obj
            receive = partial(_received, self, status.Get_source(), status.Get_tag())
            found = obj if obj.data is not None else _opened(*receive(obj.part_lengths()), receive)
            parts = receive(found.part_lengths())
        status.Set_elements(BYTE, len(found.data) + sum(found.lengths))
        return found.load(parts)

    def irecv(self, buf: Any = None, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Request:
        """RuntimeError: nobody knows how long an object is before it comes."""
        raise RuntimeError(
            "objects are received without blocking by improbe() or mprobe(), and irecv() of what that returns"
        )

    def sendrecv(
        self,
        sendobj: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Any:
        """Sends and receives."""
        request = self.isend(sendobj, dest, sendtag)
        obj = self.recv(recvbuf, source, recvtag, status)
        request.wait()
        return obj

    def mprobe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None) -> Message:
        """Waits for an object and matches it."""
        return _mprobe(self, MPI.Comm.Mprobe, source, tag, status)

    def improbe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message | None:
        """Matches an object that has come; None where none has."""
        return _mprobe(self, MPI.Comm.Improbe, source, tag, status)


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
            record, parts = _packed(obj, RECORD)
            MPI.Comm.Bcast(self, record.ljust(RECORD), root)
            if not parts:
                return loads(record)
            for piece in _pieces(parts):
                MPI.Comm.Bcast(self, piece, root)
            return _loaded(record, partial(_next, iter(parts)))
        record = bytearray(RECORD)
        MPI.Comm.Bcast(self, record, root)
        if not record.startswith(_MARK):
            return loads(record)
        return _loaded(record, partial(_filled, lambda piece: MPI.Comm.Bcast(self, piece, root)))

    def gather(self, sendobj: Any, root: int = 0) -> list | None:
        """The objects of all ranks, at the root."""
        record, parts = _packed(sendobj, RECORD)
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
        record, parts = _packed(sendobj, RECORD)
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
            record, parts = _packed(obj, RECORD)
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
        if not outgoing and not [head for head in heads if head.startswith(_MARK)]:
            return [loads(head) for head in heads]
        rank, size = self.Get_rank(), self.Get_size()
        dests = sorted(outgoing.keys() - {rank}, key=lambda dest: (dest - rank) % size)
        requests = [
            MPI.Comm.Isend(apart, piece, dest, 0) for dest in dests for piece in _pieces(outgoing[dest])
        ]
        own = partial(_copies, iter(outgoing.get(rank, ())))
        come = {}
        for source, head in sorted(zip(sources, heads), key=lambda one: (rank - one[0]) % size):
            receive = own if source == rank else partial(_received, apart, source, 0)
            found = _opened(head, receive)
            come[source] = found, receive(found.part_lengths())
        MPI.Request.Waitall(requests)
        return [found.load(parts) for found, parts in map(come.get, sources)]


class Intercomm(Comm, pkl5.Intercomm):
    """Collectives of intercommunicators are pkl5's."""
