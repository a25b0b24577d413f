"""Collectives and messages between processes of one machine, without MPI: the C API (include/nearfield.h) by ctypes.

    def exchange(mine: bytes) -> Sequence[bytes]: ...      # what all members give, in the order of ranks
    group = join(rank, size, exchange)
    check(library().nf_allreduce(group, send, recv, count, FLOAT32, SUM, None))

Groups and requests are the C API's pointers, buffers are addresses. Calls release the interpreter's lock.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence

NAME = "libnearfield-engine.so"
OK, INVALID, UNSUPPORTED, UNAVAILABLE, NO_MEMORY, TIMEOUT, DIED, BROKEN, TRUNCATED, INTERRUPTED = range(10)
BYTE, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64 = range(9)
FLOAT16, BFLOAT16, FLOAT32, FLOAT64, COMPLEX64, COMPLEX128, BOOL = range(9, 16)
SUM, AVG, PROD, MIN, MAX, BAND, BOR, BXOR = range(8)
ANY = -1

EXCHANGE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
LOOK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))


class Failure(RuntimeError):
    """A call has failed: `status` is one of OK to INTERRUPTED."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"nearfield: {text}")
        self.status = status


class Message(ctypes.Structure):
    """A message that has been received: its source, tag, and length in bytes."""

    _fields_ = [("source", ctypes.c_int), ("tag", ctypes.c_int), ("bytes", ctypes.c_size_t)]


# Parameters of the functions: group and request pointers, buffers, numbers.
_P, _I, _N, _D = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_double
_FUNCTIONS = {
    "nf_join": (_I, _I, EXCHANGE, _P, _P),
    "nf_close": (_P,),
    "nf_rank": (_P,),
    "nf_size": (_P,),
    "nf_set_timeout": (_P, _D),
    "nf_set_look": (LOOK, _P),
    "nf_alloc": (_N, _P),
    "nf_free": (_P,),
    "nf_barrier": (_P, _P),
    "nf_broadcast": (_P, _P, _N, _I, _I, _P),
    "nf_allreduce": (_P, _P, _P, _N, _I, _I, _P),
    "nf_reduce": (_P, _P, _P, _N, _I, _I, _I, _P),
    "nf_reduce_scatter": (_P, _P, _P, _N, _I, _I, _P),
    "nf_allgather": (_P, _P, _P, _N, _I, _P),
    "nf_gather": (_P, _P, _P, _N, _I, _I, _P),
    "nf_scatter": (_P, _P, _P, _N, _I, _I, _P),
    "nf_alltoall": (_P, _P, _P, _N, _I, _P),
    "nf_alltoallv": (_P, _P, _P, _P, _P, _P, _P, _P),
    "nf_send": (_P, _P, _N, _I, _I, _P),
    "nf_receive": (_P, _P, _N, _I, _I, _P, _P),
    "nf_wait": (_P, _D, _P),
    "nf_test": (_P, _D, _P, _P),
}


@functools.cache
def library() -> ctypes.CDLL:
    """The C API. Raises NotBuilt where there is none, OSError where it cannot be loaded."""
    from nearfield.libraries import library_directory

    loaded = ctypes.CDLL(str(library_directory() / NAME))
    for name, parameters in _FUNCTIONS.items():
        function = getattr(loaded, name)
        function.argtypes = parameters
        function.restype = ctypes.c_int
    for name in ("nf_version", "nf_error_text", "nf_status_name", "nf_last_algorithm"):
        getattr(loaded, name).restype = ctypes.c_char_p
    return loaded


def check(status: int) -> None:
    """Raises Failure if a call has failed; KeyboardInterrupt if Ctrl-C has ended its wait."""
    if status == OK:
        return
    if status == INTERRUPTED:
        raise KeyboardInterrupt
    raise Failure(status, library().nf_error_text().decode(errors="replace"))


def join(rank: int, size: int, exchange: Callable[[bytes], Sequence[bytes]]) -> int:
    """Joins a group; all its members call this. Returns the group, an argument of the library's functions. `exchange` gives
    some bytes to all members and returns the bytes of all. An exception that it raises is raised here.

    Raises Failure.
    """
    raised: list[BaseException] = []

    def call(_: int, mine: int, every: int, length: int) -> int:
        try:
            for r, each in enumerate(exchange(ctypes.string_at(mine, length))):
                ctypes.memmove(every + r * length, each, length)
        except BaseException as error:  # no exception passes through the library
            raised.append(error)
            return 1
        return 0

    group = ctypes.c_void_p()
    status = library().nf_join(rank, size, EXCHANGE(call), None, ctypes.byref(group))
    if raised:
        raise raised[0]
    check(status)
    assert group.value
    return group.value


@functools.cache
def be_interruptible() -> object:
    """From now on Ctrl-C ends waits, and so does any signal whose handler raises an exception. The caller keeps the returned object."""

    def look(_: int, end: ctypes._Pointer) -> None:
        # Handlers of signals run before this. If one of them raises, this does not happen, and the wait ends.
        end[0] = 0

    callback = LOOK(look)
    library().nf_set_look(callback, None)
    return callback
