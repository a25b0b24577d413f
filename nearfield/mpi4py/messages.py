"""Point to point: the parts of an object follow its head on the same communicator by the same tag.

Where there are other threads there are locks hence: no message of theirs may come between them, and no receive of theirs take one. Nobody
waits for another rank while holding one: sends are begun under a lock, and an object is matched with all its parts once it is there.
"""

from __future__ import annotations

from _thread import _count as _other_threads
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, Callable

from mpi4py import MPI
from mpi4py.MPI import ANY_SOURCE, ANY_TAG, BYTE, PROC_NULL, Status, _comm_lock
from mpi4py.util import pkl5

from nearfield.mpi4py import packing
from nearfield.mpi4py.packing import Parts, filled, opened, packed, pieces

# Bytes of a buffer that are copied into the pickle: this takes less time than another message.
INSIDE = 64 << 10


def received(comm: MPI.Comm, source: int, tag: int, lengths: Sequence[int]) -> list[MPI.buffer]:
    """Parts that come as messages."""
    return filled(lambda piece: MPI.Comm.Recv(comm, piece, source, tag), lengths)


def _match(comm: MPI.Comm, wait: bool, source: int, tag: int, status: Status | None) -> Message | None:
    """An object with all its messages; None where there is none and this call is not to wait for one."""
    status = Status() if status is None else status
    while True:
        if wait:
            MPI.Comm.Probe(comm, source, tag, status)
        with _comm_lock(comm, "nearfield.receive"):
            matched = MPI.Comm.Improbe(comm, source, tag, status)
            if matched is not None:
                return _matched(comm, matched, status)
            if not wait:
                return None
        # Another thread was faster.


def _matched(comm: MPI.Comm, matched: MPI.Message, status: Status) -> Message:
    """The object of a matched head; takes what is needed to know its parts."""
    if matched == MPI.MESSAGE_NO_PROC:
        return Message(matched)
    source, tag = status.Get_source(), status.Get_tag()
    head = bytearray(status.Get_elements(BYTE))
    matched.Recv(head)
    found = opened(head, partial(received, comm, source, tag))
    count = sum(-(-length // packing.PIECE) for length in found.part_lengths())
    parts = [MPI.Comm.Mprobe(comm, source, tag) for _ in range(count)]
    status.Set_elements(BYTE, len(found.data) + sum(found.lengths))
    # The head has come: a message of no process stands for it.
    message = Message([MPI.Message(MPI.MESSAGE_NO_PROC), *parts])
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

    _parts: Parts | None = None
    _status: Status | None = None

    def recv(self, status: Status | None = None) -> Any:
        """The object."""
        return self.irecv().wait(status)

    def irecv(self) -> Request:
        """Begins to receive the object."""
        found = self._parts or Parts(())
        parts = [MPI.buffer.allocate(length) for length in found.part_lengths()]
        request = Request(
            [message.Irecv(piece) for message, piece in zip(self, ((None, 0, BYTE), *pieces(parts)))]
        )
        if self._parts is not None:
            request._load, request._status = partial(found.load, parts), self._status
        return request

    @classmethod
    def probe(
        cls, comm: MPI.Comm, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message:
        """Waits for an object and matches it."""
        return _match(comm, True, source, tag, status)

    @classmethod
    def iprobe(
        cls, comm: MPI.Comm, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message | None:
        """Matches an object that has come; None where none has."""
        return _match(comm, False, source, tag, status)


class Comm(pkl5.Comm):
    """Point to point."""

    @cached_property
    def _sending(self) -> Any:
        return _comm_lock(self, "nearfield.send")

    def _sent(self, send: Callable, obj: Any, dest: int, tag: int) -> list:
        """What `send` returns of each message of an object."""
        head, parts = (b"", ()) if dest == PROC_NULL else packed(obj, packing.PIECE, INSIDE)
        with self._sending:
            first = send(self, head, dest, tag)
            return [first, *[send(self, piece, dest, tag) for piece in pieces(parts)]] if parts else [first]

    def send(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Sends in standard mode."""
        if _other_threads():
            self.isend(obj, dest, tag).wait()
        else:
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
        if _other_threads():
            return _match(self, True, source, tag, None).recv(status)
        status = Status() if status is None else status
        obj = MPI.Comm.recv(self, None, source, tag, status)
        if type(obj) is not Parts:
            return obj
        receive = partial(received, self, status.Get_source(), status.Get_tag())
        found = obj if obj.data is not None else opened(*receive(obj.part_lengths()), receive)
        parts = receive(found.part_lengths())
        status.Set_elements(BYTE, len(found.data) + sum(found.lengths))
        return found.load(parts)

    def irecv(self, buf: Any = None, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Request:
        """RuntimeError: nobody knows how long an object is before it comes."""
        raise RuntimeError(
            "irecv() does not know the length of an object: use improbe() or mprobe(), and irecv() of the message that they return"
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
        return _match(self, True, source, tag, status)

    def improbe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message | None:
        """Matches an object that has come; None where none has."""
        return _match(self, False, source, tag, status)
