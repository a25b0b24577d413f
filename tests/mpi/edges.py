"""Collectives whose blocks differ: the calls themselves, in all of their forms, and what a model says they move.

A call is drawn for all of its ranks at once, from numbers that all of them draw alike, so that each rank knows what the
others send and where from. What moves is a list of edges, block to block, byte by byte in the order of the types.
"""

from __future__ import annotations

import ctypes
import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from mpi4py import MPI

ORIGIN = 64  # bytes before what displacements count from
VENDOR = MPI.get_vendor()[0]

# How a side is passed: "one" count and type; "many" counts and displacements, of one type; types "each" its own.
SIDES = {
    "gatherv": ("one", "many"),
    "scatterv": ("many", "one"),
    "allgatherv": ("one", "many"),
    "alltoallv": ("many", "many"),
    "alltoallw": ("each", "each"),
    "neighbor_allgather": ("one", "one"),
    "neighbor_allgatherv": ("one", "many"),
    "neighbor_alltoall": ("one", "one"),
    "neighbor_alltoallv": ("many", "many"),
    "neighbor_alltoallw": ("each", "each"),
}
V_FORMS = [name for name in SIDES if not name.startswith("neighbor")]
OF_NEIGHBOURS = [name for name in SIDES if name.startswith("neighbor")]


PROGRAM = ctypes.CDLL(None)  # what is preloaded
HOST = ctypes.CDLL(re.search(r"\S+/libmpi\.so\S*", Path("/proc/self/maps").read_text())[0])


def function_name(name: str, immediate: bool, large: bool) -> str:
    """Of a form of a collective in C."""
    return f"MPI_{f'I{name}' if immediate else name.capitalize()}{'_c' if large else ''}"


def has(name: str, immediate: bool, large: bool) -> bool:
    """Whether a form can be called. Nearfield serves blocking large-count forms that the host lacks."""
    function = function_name(name, immediate, large)
    return hasattr(HOST, function) or (not immediate and hasattr(PROGRAM, function))


def handle(thing: MPI.Comm | MPI.Datatype) -> ctypes.c_int | ctypes.c_void_p:
    """The handle of C."""
    of = ctypes.c_int if MPI._sizeof(thing) == 4 else ctypes.c_void_p
    return of(MPI._handleof(thing))


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


def families() -> list[list[Kind]]:
    """Datatypes of the same signature, but for their number of units: doubles, bytes, and an integer and two floats."""
    double, byte = MPI.DOUBLE, MPI.BYTE
    doubles = [
        kind(double, [0], 8),
        kind(double.Create_resized(0, 24), [0], 8),
        kind(double.Create_resized(-8, 24), [0], 8),
        kind(double.Create_contiguous(2), [0, 8], 8),
        kind(double.Create_vector(2, 1, 3), [0, 24], 8),
        kind(double.Create_indexed([1, 2], [3, 0]), [24, 0, 8], 8),
        kind(double.Create_hindexed_block(1, [24, -16]), [24, -16], 8),
    ]
    bytes_ = [
        kind(byte, [0], 1),
        kind(byte.Create_contiguous(3), [0, 1, 2], 1),
        kind(byte.Create_vector(3, 1, 2), [0, 2, 4], 1),
    ]

    def mixed(of_int: int, of_floats: int, extent: int) -> Kind:
        made = MPI.Datatype.Create_struct([1, 2], [of_int, of_floats], [MPI.INT, MPI.FLOAT])
        places = np.concatenate([of_int + np.arange(4), of_floats + np.arange(8)])
        return Kind(made.Create_resized(0, extent).Commit(), 1, places, extent)

    wide = mixed(0, 12, 24)
    pair = Kind(wide.type.Create_contiguous(2).Commit(), 2, wide.places(2), 48)
    return [doubles, bytes_, [mixed(0, 4, 12), wide, mixed(8, 0, 12), pair]]


FAMILIES = families()


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


def lined_up(of: Kind, units: int, blocks: int) -> Side:
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


def fitting(draw: random.Random, family: list[Kind], units: list[int]) -> Kind:
    """A type that all of these blocks are whole numbers of."""
    return draw.choice([one for one in family if not any(u % one.units for u in units)])


def many(draw: random.Random, family: list[Kind], units: list[int], each: bool) -> Side:
    """Blocks of one type, or each of its own."""
    if each:
        kinds = [fitting(draw, family, [u]) for u in units]
        return placed(draw, kinds or family[:1], units, in_bytes=True)
    return placed(draw, [fitting(draw, family, units)] * max(len(units), 1), units, in_bytes=False)


def lengths(draw: random.Random, family: list[Kind]) -> Callable[[], int]:
    """Draws units of a block: nothing, little, up to 100 KiB."""
    size = len(family[0].bytes)
    longest = draw.choice([1, 3, 3, 40, 40, 700, 700, 100 * 1024 // size // 6])
    step = draw.choice([1, 6, 6])
    return lambda: step * draw.choice([0, 1, draw.randrange(longest + 1), longest])


@dataclass
class Call:
    """A collective call of all ranks of a communicator."""

    name: str
    sends: list[Side | None]  # by rank; None where it is not significant
    receives: list[Side | None]
    # Of each rank: by block that it receives, the rank that it comes from, and the block there.
    edges: list[list[tuple[int, int, int]]]
    root: int | None = None
    in_place: list[int] = field(default_factory=list)  # ranks
    seed: int = 0

    def start(self, rank: int, sending: bool) -> np.ndarray:
        """What a rank's buffer holds at first."""
        side = (self.sends if sending else self.receives)[rank]
        room = side.room if side else 0
        return np.random.default_rng([self.seed, rank, sending]).integers(0, 256, room, dtype="u1")

    def expected(self, rank: int) -> np.ndarray:
        """What the model says the rank's receive buffer holds afterwards."""
        result = self.start(rank, False)
        buffers: dict[int, tuple[np.ndarray, Side]] = {}
        for block, source, there in self.edges[rank]:
            if source not in buffers:
                from_send = source not in self.in_place or self.name == "scatterv"
                side = (self.sends if from_send else self.receives)[source]
                buffers[source] = self.start(source, from_send), side
            data, side = buffers[source]
            result[self.receives[rank].places(block)] = data[side.places(there)]
        return result

    def free(self) -> None:
        """Frees types that were made for it."""
        kept = [one for family in FAMILIES for one in family]
        sides = [side for side in self.sends + self.receives if side]
        for one in {id(one): one for side in sides for one in side.kinds}.values():
            if not any(one is other for other in kept):
                one.type.Free()

    def __str__(self) -> str:
        return f"{self.name}, root {self.root}, in place {self.in_place}, seed {self.seed}"


class Running:
    """A rank's part of a call, from its start to its end. `immediate` is the non-blocking form, `large` that of _c."""

    def __init__(self, call: Call, comm: MPI.Intracomm, immediate: bool, large: bool) -> None:
        me = comm.rank
        self.call, self.rank = call, me
        self.sent, self.result = call.start(me, True), call.start(me, False)
        self.keep: list = []
        sides = zip(
            (call.sends[me], call.receives[me]), (self.sent, self.result), SIDES[call.name], strict=True
        )
        arguments = []
        for number, (side, buffer, shape) in enumerate(sides):
            in_place = me in call.in_place and number == (call.name == "scatterv")
            arguments += self.side(None if in_place else side, buffer, shape, large)
            if in_place:
                arguments[-len(self.shape_names(shape))] = ctypes.c_void_p(int(MPI.IN_PLACE))
        if call.root is not None:
            arguments.append(ctypes.c_int(call.root))
        arguments.append(handle(comm))
        name = function_name(call.name, immediate, large)
        function = getattr(PROGRAM if hasattr(PROGRAM, name) else HOST, name)
        self.requests: list[MPI.Request] = []
        made = handle(MPI.REQUEST_NULL)
        self.keep += arguments
        code = function(*arguments, *([ctypes.byref(made)] if immediate else []))
        if code != MPI.SUCCESS:
            raise MPI.Exception(code)
        if immediate:
            self.requests.append(MPI.Request.fromhandle(made.value % (1 << 8 * ctypes.sizeof(made))))

    @staticmethod
    def shape_names(shape: str) -> list[str]:
        """The arguments of a side."""
        return (
            ["buffer", "count", "type"] if shape == "one" else ["buffer", "counts", "displacements", "types"]
        )

    def side(self, side: Side | None, buffer: np.ndarray, shape: str, large: bool) -> list:
        """A side's arguments. What is not significant is null."""
        count = ctypes.c_longlong if large else ctypes.c_int
        neighbours = self.call.name.startswith("neighbor")
        place = ctypes.c_ssize_t if large or (neighbours and shape == "each") else ctypes.c_int
        if not side:
            nothing = handle(MPI.DATATYPE_NULL)
            if shape == "one":
                return [ctypes.c_void_p(), count(0), nothing]
            return [
                ctypes.c_void_p(),
                ctypes.c_void_p(),
                ctypes.c_void_p(),
                ctypes.c_void_p() if shape == "each" else nothing,
            ]
        data = ctypes.c_void_p(buffer.ctypes.data + ORIGIN)
        first = handle(side.kinds[0].type)
        if shape == "one":
            return [data, count(side.counts[0]), first]
        counts = (count * len(side.counts))(*side.counts)
        places = (place * len(side.counts))(*side.displacements)
        if shape == "many":
            return [data, counts, places, first]
        types = (type(first) * len(side.kinds))(*[handle(one.type).value for one in side.kinds])
        return [data, counts, places, types]

    def wrong(self) -> str:
        """What is wrong with the result, by the model; empty where nothing is."""
        me = self.rank
        if not np.array_equal(self.sent, self.call.start(me, True)):
            return "wrote into the send buffer"
        expected = self.call.expected(me)
        where = np.flatnonzero(self.result != expected)
        if not len(where):
            return ""
        old = self.call.start(me, False)
        missed = int((self.result[where] == old[where]).sum())
        return f"{len(where)} of {len(expected)} bytes differ, first {where[:4]}, {missed} of them untouched"


def works(name: str, p: int, immediate: bool, in_place: bool) -> bool:
    """Whether plain hosts do it right.

    Open MPI 5.0.11: Alltoallw of one rank writes where it should not; in place, Ialltoallv of four ranks and more moves
    wrong data and Ialltoallw never ends when a rank has nothing to send. Intel MPI 2021.19: Ialltoallw in place ends with
    a truncation when the types of blocks differ.
    """
    if VENDOR == "Open MPI":
        return not (name == "alltoallw" and p == 1) and not (immediate and in_place)
    return not (VENDOR == "Intel MPI" and name == "alltoallw" and immediate and in_place)


def differing(total: int) -> bool:
    """Whether ranks can call Allgatherv of so many bytes with types of different sizes and extents on plain hosts.

    Open MPI 5.0.11 chooses the algorithm by the size of the send type, each rank for itself, and hangs. MPICH 5.0.2 and
    Intel MPI cut blocks into parts of 32 KiB of the receive type's extents, which do not match: truncation, or wrong
    results of Iallgatherv.
    """
    return VENDOR != "Open MPI" and total < 16384


def vector_call(draw: random.Random, p: int, immediate: bool, name: str | None = None) -> Call:
    """A random v-form among `p` ranks."""
    name = name or draw.choice(V_FORMS)
    if not works(name, p, immediate, in_place=False):
        name = "alltoallv"
    family = draw.choice(FAMILIES)
    length, seed, in_place = lengths(draw, family), draw.randrange(1 << 30), draw.random() < 0.3
    if name.startswith("alltoall"):
        in_place = in_place and works(name, p, immediate, in_place=True)
        return exchange(draw, p, name, family, length, seed, in_place)
    units = [length() for _ in range(p)]
    if name == "allgatherv" and not differing(sum(units) * len(family[0].bytes)):
        like = fitting(draw, family, units)
        openmpi = VENDOR == "Open MPI"
        family = [one for one in family if one.units == like.units and (openmpi or one.extent == like.extent)]
    ranks = list(range(p))
    root = None if name == "allgatherv" else draw.randrange(p)
    ones = [lined_up(fitting(draw, family, [u]), u, 1) for u in units]
    matrix = None
    if family[0].type == MPI.DOUBLE and draw.random() < 0.25 and max(units) <= 6000:
        matrix = columns(1 if any(u % 3 for u in units) else 3, p, max(units) or 1)

    def all_blocks() -> Side:
        if not matrix:
            return many(draw, family, units, each=False)
        width = max(units) or 1
        counts = [u // matrix.units for u in units]
        return Side([matrix] * p, counts, [r * width for r in ranks], [8] * p)

    alls = [all_blocks() if root in (None, r) else None for r in ranks]
    placing = (ranks if root is None else [root]) if in_place else []
    if name == "scatterv":
        edges = [[] if r in placing else [(0, root, r)] for r in ranks]
        return Call(
            name,
            alls,
            [None if r in placing else ones[r] for r in ranks],
            edges,
            root,
            placing and [root],
            seed,
        )
    edges = [[(r, r, r if r in placing else 0) for r in ranks] if alls[me] else [] for me in ranks]
    return Call(name, [None if r in placing else ones[r] for r in ranks], alls, edges, root, placing, seed)


def exchange(
    draw: random.Random,
    p: int,
    name: str,
    family: list[Kind],
    length: Callable[[], int],
    seed: int,
    in_place: bool,
) -> Call:
    """A random Alltoallv or Alltoallw."""
    units = [[length() for _ in range(p)] for _ in range(p)]
    each = name == "alltoallw"
    ranks = range(p)
    if in_place:  # what two exchange is as long
        units = [[units[min(i, j)][max(i, j)] for j in ranks] for i in ranks]
    receives = [many(draw, family, [units[r][me] for r in ranks], each) for me in ranks]
    if in_place and not each:  # and of the same type
        same = fitting(draw, family, sum(units, []))
        receives = [placed(draw, [same] * p, units[me], in_bytes=False) for me in ranks]
    if in_place and each:
        kinds = [[fitting(draw, family, [units[i][j]]) for j in ranks] for i in ranks]
        receives = [
            placed(draw, [kinds[min(me, j)][max(me, j)] for j in ranks], units[me], in_bytes=True)
            for me in ranks
        ]
    sends = [None if in_place else many(draw, family, units[me], each) for me in ranks]
    edges = [[(r, r, me) for r in ranks] for me in ranks]
    return Call(name, sends, receives, edges, None, list(ranks) if in_place else [], seed)


@dataclass
class Neighbours:
    """Who is whose neighbour in a communicator with a topology, in the order of the topology."""

    sources: list[list[int]]  # by rank
    targets: list[list[int]]
    cartesian: bool

    @classmethod
    def of(cls, comm: MPI.Topocomm) -> Neighbours:
        """Asks all ranks."""
        if comm.topology == MPI.CART:
            mine = [r for d in range(comm.Get_dim()) for r in comm.Shift(d, 1)]
            own = mine, mine
        elif comm.topology == MPI.GRAPH:
            own = comm.Get_neighbors(comm.rank), comm.Get_neighbors(comm.rank)
        else:
            own = comm.Get_dist_neighbors()[:2]
        of_all = comm.allgather([list(one) for one in own])
        return cls([s for s, _ in of_all], [t for _, t in of_all], comm.topology == MPI.CART)

    def paired(self, directed: bool) -> list[list[tuple[int, int, int]]]:
        """Edges as of a call. Of several edges between two ranks the n-th block meets the n-th, or, `directed`, what
        is sent towards one side of a grid comes from the other."""
        edges = []
        for me, sources in enumerate(self.sources):
            mine = []
            for block, source in enumerate(sources):
                if source == MPI.PROC_NULL:
                    continue
                there = [i for i, to in enumerate(self.targets[source]) if to == me]
                mine.append((block, source, block ^ 1 if directed else there[sources[:block].count(source)]))
            edges.append(mine)
        return edges

    def edges(self) -> list[list[tuple[int, int, int]]]:
        """As MPI 4.1 pairs them, and Nearfield under every host."""
        return self.paired(self.cartesian)

    def host_agrees(self, immediate: bool) -> bool:
        """Whether the plain host does so too. Found out on grids with periodic dimensions of 1 and 2, in alltoall,
        alltoallv and alltoallw: MPICH 5.0.2 does, Open MPI 5.0.11 only in its blocking forms, Intel MPI 2021.19 never."""
        return not self.ambiguous or {"MPICH": True, "Open MPI": not immediate, "Intel MPI": False}[VENDOR]

    @property
    def ambiguous(self) -> bool:
        """Whether hosts differ."""
        return self.cartesian and self.paired(True) != self.paired(False)


def neighbour_call(draw: random.Random, near: Neighbours, name: str | None = None) -> Call:
    """A random call among neighbours."""
    name = name or draw.choice(OF_NEIGHBOURS)
    family = draw.choice(FAMILIES)
    length, seed = lengths(draw, family), draw.randrange(1 << 30)
    edges, ranks = near.edges(), range(len(near.sources))
    sends: list[Side | None] = []
    receives: list[Side | None] = []
    if name == "neighbor_allgather" or name == "neighbor_alltoall":
        units = length()
        for me in ranks:
            blocks = len(near.targets[me]) if name == "neighbor_alltoall" else 1
            sends.append(lined_up(fitting(draw, family, [units]), units, blocks))
            receives.append(lined_up(fitting(draw, family, [units]), units, len(near.sources[me])))
    elif name == "neighbor_allgatherv":
        units = [length() for _ in ranks]
        for me in ranks:
            sends.append(lined_up(fitting(draw, family, [units[me]]), units[me], 1))
            got = [units[s] if s != MPI.PROC_NULL else length() for s in near.sources[me]]
            receives.append(many(draw, family, got, each=False))
    else:
        sent = [[length() for _ in near.targets[me]] for me in ranks]
        got = [
            [length() for _ in near.sources[me]] for me in ranks
        ]  # what comes from nobody can be of any length
        for me in ranks:
            for block, source, there in edges[me]:
                got[me][block] = sent[source][there]
        for me in ranks:
            sends.append(many(draw, family, sent[me], name.endswith("w")))
            receives.append(many(draw, family, got[me], name.endswith("w")))
    if "allgather" in name:
        edges = [[(block, source, 0) for block, source, _ in mine] for mine in edges]
    return Call(name, sends, receives, edges, seed=seed)
