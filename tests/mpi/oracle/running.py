"""A rank's part of a collective call, by the function of C of one of its forms, and what it left in memory."""

from __future__ import annotations

import ctypes
import mmap
import random
import re
from collections import Counter
from pathlib import Path

import numpy as np
from mpi4py import MPI

from tests.mpi.oracle.calls import REDUCTIONS, SIDES, Call
from tests.mpi.oracle.layouts import ORIGIN, Side, at_address

PROGRAM = ctypes.CDLL(None)  # what is preloaded
HOST = ctypes.CDLL(re.search(r"\S+/libmpi\.so\S*", Path("/proc/self/maps").read_text())[0])
VENDOR = MPI.get_vendor()[0]
LOADED = hasattr(PROGRAM, "nearfield_last_algorithm")
BY_HOST: Counter[str] = Counter()  # calls that a case has left to the host, by collective
FORMS = ["blocking", "immediate", "persistent"]


def function_name(name: str, form: str, large: bool) -> str:
    """Of a form of a collective in C."""
    called = (
        f"I{name}" if form == "immediate" else name.capitalize() + ("_init" if form == "persistent" else "")
    )
    return f"MPI_{called}{'_c' if large else ''}"


def has(name: str, form: str, large: bool = False) -> bool:
    """Whether a form can be called. Nearfield serves blocking large-count forms that the host lacks."""
    function = function_name(name, form, large)
    return hasattr(HOST, function) or (form == "blocking" and hasattr(PROGRAM, function))


def handle(thing: MPI.Comm | MPI.Datatype | MPI.Op | MPI.Request) -> ctypes.c_int | ctypes.c_void_p:
    """The handle of C."""
    of = ctypes.c_int if MPI._sizeof(thing) == 4 else ctypes.c_void_p
    return of(MPI._handleof(thing))


def served() -> str:
    """The algorithm of the last collective call, `host` where Nearfield is not loaded."""
    if not LOADED:
        return "host"
    PROGRAM.nearfield_last_algorithm.restype = ctypes.c_char_p
    return PROGRAM.nearfield_last_algorithm().decode()


class Memory:
    """A buffer in one of the kinds of memory that programs have: of the heap, of MPI, or private pages of its own."""

    def __init__(self, own: random.Random, size: int, sort: str = "") -> None:
        shift = own.choice([0, 0, 1, 3, 32])
        sort = sort or own.choice(["heap", "heap", "heap", "MPI", "pages"])
        self.of_mpi = MPI.Alloc_mem(size + shift) if sort == "MPI" else None
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        pages = mmap.mmap(-1, size + shift, private) if sort == "pages" else None
        raw = self.of_mpi or pages or bytearray(size + shift)
        self.bytes: np.ndarray | None = np.frombuffer(raw, "u1")[shift : shift + size]

    def free(self) -> None:
        """Of MPI's, what only it can free."""
        self.bytes = None
        if self.of_mpi is not None:
            MPI.Free_mem(self.of_mpi)
            self.of_mpi = None


class Running:
    """A rank's part of a call, from its start to its end; `own` draws what is this rank's own business.

    The blocking form is complete when the object is there. The persistent one begins with start(), and may do so again.
    """

    def __init__(
        self,
        call: Call,
        comm: MPI.Comm,
        me: int,
        form: str,
        large: bool,
        own: random.Random,
        memory: str = "",
    ) -> None:
        self.call, self.rank, self.form, self.starts = call, me, form, -1
        self.memory = [
            Memory(own, side.room if side else 1, memory) for side in (call.sends[me], call.receives[me])
        ]
        self.requests: list[MPI.Request] = []
        # Types may go when what uses them has begun, and those of one side have addresses in them: two buffers that are
        # MPI_BOTTOM are one to hosts.
        self.flees, self.absolute = own.random() < 0.1, own.choice([0, 1]) if own.random() < 0.2 else None
        self.fleeting: dict[tuple[int, int], MPI.Datatype] = {}
        arguments = [*self.arguments(large), *self.root(), handle(comm)]
        name = function_name(call.name, form, large)
        function = getattr(PROGRAM if hasattr(PROGRAM, name) else HOST, name)
        made = handle(MPI.REQUEST_NULL)
        if form == "persistent":
            arguments.append(handle(MPI.INFO_NULL))
        else:
            self.fill()
        self.keep = arguments  # arrays of counts and types belong to the call until it ends
        code = function(*arguments, *([] if form == "blocking" else [ctypes.byref(made)]))
        for type in self.fleeting.values():
            type.Free()
        if code != MPI.SUCCESS:
            error = MPI.Exception(code)
            error.add_note(f"{call}, {form}, large {large}, rank {me}")
            raise error
        if form != "blocking":
            sort = MPI.Prequest if form == "persistent" else MPI.Request
            self.requests.append(sort.fromhandle((made.value or 0) % (1 << 8 * ctypes.sizeof(made))))

    def fill(self) -> None:
        """Writes what the buffers hold before the next start."""
        self.starts += 1
        for memory, sending in zip(self.memory, (True, False), strict=True):
            start = self.call.start(self.rank, sending, self.starts)
            memory.bytes[: len(start)] = start

    def start(self) -> None:
        """Begins a persistent call."""
        self.fill()
        self.requests[0].Start()

    def root(self) -> list:
        """The argument, where there is one."""
        root, sizes = self.call.root, self.call.sizes
        if root is None:
            return []
        groups = [member >= sizes[0] for member in (self.rank, root)]
        if len(sizes) > 1 and groups[0] == groups[1]:
            return [ctypes.c_int(MPI.ROOT if self.rank == root else MPI.PROC_NULL)]
        return [ctypes.c_int(root - sizes[0] if groups[1] else root)]

    def arguments(self, large: bool) -> list:
        """All but root and communicator."""
        call, me = self.call, self.rank
        sides = [call.sends[me], call.receives[me]]
        places = [
            ctypes.c_void_p(memory.bytes.ctypes.data + ORIGIN if side else None)
            for memory, side in zip(self.memory, sides, strict=True)
        ]
        self.begin = None if self.absolute is None else places[self.absolute].value
        if me in call.in_place:
            places[call.name.startswith("scatter")] = ctypes.c_void_p(int(MPI.IN_PLACE))
        if call.name in REDUCTIONS:
            count = ctypes.c_longlong if large else ctypes.c_int
            length = count(call.total)
            if call.name == "reduce_scatter_block":
                length = count(call.parts[me])
            elif call.name == "reduce_scatter":
                first = call.sizes[0]
                parts = call.parts[:first] if me < first else call.parts[first:]
                length = (count * len(parts))(*parts)
            return [*places, length, self.type(call.operand.kind.type), handle(call.operator.op)]
        shapes = SIDES[call.name]
        if len(shapes) == 1:  # bcast
            number = 0 if sides[0] else 1
            return self.side(sides[number], places[number], shapes[0], large)
        pairs = zip(sides, places, shapes, strict=False)
        return [argument for side, place, shape in pairs for argument in self.side(side, place, shape, large)]

    def type(self, type: MPI.Datatype, address: int = 0) -> ctypes.c_int | ctypes.c_void_p:
        """Its handle, or that of a duplicate, or of one at an address, which are freed at once."""
        if type.is_predefined or not (self.flees or address):
            return handle(type)
        key = id(type), address
        if key not in self.fleeting:
            self.fleeting[key] = at_address(type, address) if address else type.Dup()
        return handle(self.fleeting[key])

    def side(self, side: Side | None, place: ctypes.c_void_p, shape: str, large: bool) -> list:
        """A side's arguments. What is not significant is null."""
        count = ctypes.c_longlong if large else ctypes.c_int
        bytes_ = self.call.name == "neighbor_alltoallw"
        at = ctypes.c_ssize_t if large or bytes_ else ctypes.c_int
        if not side:
            # Open MPI looks at the types of those of a root's group who move nothing.
            nothing = handle(MPI.DATATYPE_NULL if len(self.call.sizes) == 1 else MPI.BYTE)
            null = ctypes.c_void_p()
            if shape == "one":
                return [place, count(0), nothing]
            return [place, null, null, null if shape == "each" else nothing]
        address = 0
        if self.begin and place.value == self.begin and not any(k.type.is_predefined for k in side.kinds):
            address, place = place.value, ctypes.c_void_p(0)
        first = self.type(side.kinds[0].type, address)
        if shape == "one":
            return [place, count(side.counts[0]), first]
        counts = (count * len(side.counts))(*side.counts)
        places = (at * len(side.counts))(*side.displacements)
        if shape == "many":
            return [place, counts, places, first]
        types = (first.__class__ * len(side.kinds))(
            *[self.type(one.type, address).value for one in side.kinds]
        )
        return [place, counts, places, types]

    def wrong(self, exact: bool = True) -> str:
        """What is wrong with the result, by the model; empty where nothing is."""
        call, me = self.call, self.rank
        sent, got = (memory.bytes for memory in self.memory)
        start, expected = call.start(me, True, self.starts), call.expected(me, self.starts)
        if not np.array_equal(sent[: len(start)], start):
            return "wrote into the send buffer"
        got = got[: len(expected)]
        differs = got != expected
        differs[call.undefined(me)] = False
        where = np.flatnonzero(differs)
        if call.operator and (call.operand.dtype.kind, call.operator.name) == ("c", "prod"):
            exact = False  # the engine's may fuse multiplication and addition
        if not len(where) or (self.rounded(got, expected, where) and not exact):
            return ""
        old = call.start(me, False, self.starts)
        missed = int((got[where] == old[where]).sum())
        return f"{len(where)} of {len(expected)} bytes differ, first {where[:4]}, {missed} of them untouched"

    def rounded(self, got: np.ndarray, expected: np.ndarray, where: np.ndarray) -> bool:
        """Whether a reduction of floating-point numbers differs as other orders of operands may."""
        call, operand = self.call, self.call.operand
        if not call.operator or not call.operator.rounds:
            return False
        whose, first, count = call.terms[self.rank]
        places = call.receives[self.rank].places(0)[: count * operand.dtype.itemsize]
        if not np.isin(where, places).all():
            return False
        if call.operator.ordered:
            return True
        sizes = [abs(call.given(one, self.starts)[first : first + count]).astype("f8") for one in whose]
        scale = call.operator.function.reduce(sizes)
        error = abs(got[places].view(operand.dtype) - expected[places].view(operand.dtype))
        return bool((error <= 4 * len(sizes) * np.finfo(operand.dtype).eps * scale).all())

    def result(self) -> bytes:
        """What the receive buffer holds, but for what is not defined."""
        room = self.call.receives[self.rank].room if self.call.receives[self.rank] else 0
        got = self.memory[1].bytes[:room].copy()
        got[self.call.undefined(self.rank)] = 0
        return got.tobytes()

    def free(self) -> None:
        """Frees requests that persist, and memory."""
        for request in self.requests:
            if request != MPI.REQUEST_NULL:
                request.Free()
        for memory in self.memory:
            memory.free()
