"""Collective calls of all kinds, as all of their ranks know them, and what they have to leave in memory.

A call is drawn for all of its members at once, from numbers that all of them draw alike, so that each knows what the others
give. Members are the ranks of a communicator; of an intercommunicator first those of the first group, then the others.
What moves is a list of edges, block to block, byte by byte in the order of the types; what is combined is the left fold of
what some members give.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from mpi4py import MPI

from tests.mpi.oracle.layouts import (
    FAMILIES,
    ORIGIN,
    Kind,
    Side,
    columns,
    family,
    fitting,
    lengths,
    lined_up,
    many,
    nested,
    placed,
    plain,
)
from tests.mpi.oracle.operands import OPERANDS, Operand, Operator, fold

# How a side is passed: "one" count and type; "many" counts and displacements, of one type; types "each" its own.
SIDES = {
    "barrier": (),
    "bcast": ("one",),
    "allgather": ("one", "one"),
    "gather": ("one", "one"),
    "scatter": ("one", "one"),
    "alltoall": ("one", "one"),
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
REDUCTIONS = ["reduce", "allreduce", "reduce_scatter_block", "reduce_scatter", "scan", "exscan"]
OF_NEIGHBOURS = [name for name in SIDES if name.startswith("neighbor")]
V_FORMS = ["gatherv", "scatterv", "allgatherv", "alltoallv", "alltoallw"]
MOVES = [name for name in SIDES if name not in OF_NEIGHBOURS]
ROOTED = ("bcast", "gather", "scatter", "gatherv", "scatterv", "reduce")
Edge = tuple[int, int, int]  # a block, the member that it comes from, and the block there
Length = Callable[[], int]


@dataclass
class Members:
    """Whom each member receives blocks from, and whom it has blocks for, in the order of the blocks."""

    sources: list[list[int]]
    targets: list[list[int]]
    edges: list[list[Edge]]
    sizes: list[int]  # of the groups
    ambiguous: bool = False  # hosts do not agree on the edges

    @classmethod
    def of_groups(cls, *sizes: int) -> Members:
        """All of one group, or all of two."""
        first, size = sizes[0], sum(sizes)
        whole = list(range(size))
        others = [whole if len(sizes) == 1 else whole[first:] if m < first else whole[:first] for m in whole]
        edges = [[(b, s, others[s].index(m)) for b, s in enumerate(others[m])] for m in whole]
        return cls(others, others, edges, list(sizes))

    @property
    def size(self) -> int:
        """Of all groups."""
        return sum(self.sizes)

    def group(self, member: int) -> list[int]:
        """The members of its group."""
        first = self.sizes[0]
        return list(range(first) if member < first else range(first, self.size))


@dataclass
class Call:
    """A collective call of all members of a communicator."""

    name: str
    sends: list[Side | None]  # by member; None where it is not significant
    receives: list[Side | None]
    edges: list[list[Edge]]  # of each member
    sizes: list[int]  # of the groups
    root: int | None = None
    in_place: list[int] = field(default_factory=list)  # members
    seed: int = 0
    operand: Operand | None = None  # of a reduction
    operator: Operator | None = None
    total: int = 0  # elements that each member gives to it
    terms: list[tuple[Sequence[int], int, int]] = field(
        default_factory=list
    )  # whose, first element, how many
    parts: list[int] = field(default_factory=list)  # reduce_scatter's counts, by member
    types: list[Kind] = field(default_factory=list)  # that were made for it

    def given(self, member: int, start: int) -> np.ndarray:
        """What a member gives to a reduction in that start of a persistent call."""
        composes = self.operator.name == "composed"
        return self.operand.values([self.seed, member, start], self.total, composes)

    def start(self, member: int, sending: bool, start: int = 0) -> np.ndarray:
        """What a member's buffer holds before a start."""
        side = (self.sends if sending else self.receives)[member]
        generator = np.random.default_rng([self.seed, member, sending, start])
        room = side.room if side else 0
        buffer = np.frombuffer(bytearray(generator.bytes(room + 1)), "u1")[:room]
        if side and self.operand and (sending or member in self.in_place):
            buffer[side.places(0)] = self.given(member, start).view("u1")
        return buffer

    def expected(self, member: int, start: int = 0) -> np.ndarray:
        """What a member's receive buffer holds afterwards."""
        result = self.start(member, False, start)
        side = self.receives[member]
        if self.terms:
            whose, first, count = self.terms[member]
            if side and whose and count:
                parts = [self.given(one, start)[first : first + count] for one in whose]
                made = fold(self.operator, parts).view("u1")
                result[side.places(0)[: made.size]] = made
            return result
        buffers: dict[int, tuple[np.ndarray, Side]] = {}
        for block, source, there in self.edges[member]:
            if source not in buffers:
                from_send = source not in self.in_place or self.name.startswith("scatter")
                other = (self.sends if from_send else self.receives)[source]
                buffers[source] = self.start(source, from_send, start), other
            data, other = buffers[source]
            result[side.places(block)] = data[other.places(there)]
        return result

    def undefined(self, member: int) -> np.ndarray:
        """Places of a receive buffer that may hold anything: of operands in place, what lies behind the result; and what
        C leaves empty in a pair."""
        side = self.receives[member]
        if not self.terms or not side:
            return np.zeros(0, int)
        whose, _, count = self.terms[member]
        behind = side.places(0)[(count if whose else 0) * self.operand.dtype.itemsize :]
        if self.operand.name == "pair":
            empty = ORIGIN + np.arange(side.counts[0] * 16).reshape(-1, 16)[:, 12:].ravel()
            behind = np.concatenate([behind, empty])
        return behind if member in self.in_place or self.operand.name == "pair" else np.zeros(0, int)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to be moved or combined."""
        return self.name != "barrier" and not any(
            sum(side.counts) for side in self.sends + self.receives if side
        )

    def free(self) -> None:
        """Frees types that were made for it."""
        for one in self.types:
            one.type.Free()

    def __str__(self) -> str:
        what = f" of {self.total} {self.operand.name} by {self.operator.name}" if self.operand else ""
        return f"{self.name}{what} of {len(self.sends)}, root {self.root}, in place {self.in_place}, seed {self.seed}"


def moving(
    draw: random.Random,
    name: str,
    members: Members,
    among: list[Kind],
    length: Length,
    root: int | None,
    in_place: bool,
    seed: int,
) -> Call:
    """A call that moves blocks of `length` units, one for all where the call has one count."""
    shapes, whole = SIDES[name], range(members.size)
    kind_of = name.removeprefix("neighbor_")
    to_each, from_each = (
        kind_of.startswith(("alltoall", "scatter")),
        "all" in name or kind_of.startswith("gather"),
    )
    in_place = (
        in_place
        and len(members.sizes) == 1
        and name not in OF_NEIGHBOURS
        and name not in ("barrier", "bcast")
    )
    if name == "barrier":
        return Call(
            name, [None] * len(whole), [None] * len(whole), [[]] * len(whole), members.sizes, None, [], seed
        )
    edges = members.edges
    if kind_of.startswith("gather"):
        edges = [edges[m] if m == root else [] for m in whole]
    elif root is not None:
        edges = [[(0, s, there) for _, s, there in edges[m] if s == root] for m in whole]
    if not to_each:
        edges = [[(block, source, 0) for block, source, _ in mine] for mine in edges]
    if name == "bcast":
        edges = [mine if m != root else [] for m, mine in enumerate(edges)]
    senders = [
        m for m in whole if root is None or (m == root if not from_each else m in members.sources[root])
    ]
    # What each has for each, in units; where there is one count, it is that of its group.
    blocks = [len(members.targets[m]) if to_each else 1 for m in whole]
    if "one" == shapes[0] == shapes[-1]:
        of_group = [length() for _ in members.sizes]
        sent = [[of_group[m >= members.sizes[0]]] * blocks[m] for m in whole]
        length = lambda: of_group[-1]  # noqa: E731
    else:
        sent = [[length() for _ in range(blocks[m])] for m in whole]
    if in_place and kind_of.startswith("alltoall"):  # what two exchange is as long
        sent = [[sent[min(i, j)][max(i, j)] for j in whole] for i in whole]
    placing = (list(whole) if root is None else [root]) if in_place else []
    made: list[Kind] = []
    if name in ("gatherv", "scatterv", "allgatherv") and among[0].type == MPI.DOUBLE and draw.random() < 0.25:
        units = [n for m in senders for n in sent[m]]
        if max(units) <= 6000:  # columns of a matrix
            made = [columns(1 if any(u % 3 for u in units) else 3, len(whole), max(units) or 1)]

    def side(units: list[int], shape: str, same: Kind | None) -> Side:
        if shape == "one":
            one = units or [length()]  # counts are significant also where there are no neighbours
            return lined_up(same or fitting(draw, among, one), max(one), len(units))
        if made:
            counts, width = [u // made[0].units for u in units], max(units) or 1
            return Side(made * len(units), counts, [r * width for r in range(len(units))], [8] * len(units))
        if same:
            return placed(draw, [same] * max(len(units), 1), units, in_bytes=shape == "each")
        return many(draw, among, units, shape == "each")

    # Blocks that are exchanged in place are of the same type on both sides.
    same = fitting(draw, among, sum(sent, [])) if placing and kind_of in ("alltoall", "alltoallv") else None
    kinds = (
        [[fitting(draw, among, [sent[i][j]]) for j in whole] for i in whole]
        if placing and shapes[0] == "each"
        else None
    )
    sends: list[Side | None] = [None] * len(whole)
    receives: list[Side | None] = [None] * len(whole)
    for m in whole:
        if m in senders and not (m in placing and not kind_of.startswith("scatter")):
            sends[m] = side(sent[m], shapes[0], None)
        receiving = root is None or (m == root if from_each else m in members.targets[root])
        if receiving and not (name == "bcast" and m == root):
            got = [length() for _ in (members.sources[m] if from_each else [0])]
            for block, source, there in edges[m]:
                got[block] = sent[source][there]
            if kinds:
                pairs = [kinds[min(m, j)][max(m, j)] for j in whole]
                receives[m] = placed(draw, pairs, got, in_bytes=True)
            else:
                receives[m] = side(got, shapes[-1], same)
    if placing and kind_of.startswith("scatter"):
        receives[root], edges[root] = None, []
    elif placing and not to_each:  # the own block lies where it belongs
        edges = [[(b, s, b if s in placing else there) for b, s, there in mine] for mine in edges]
    return Call(name, sends, receives, edges, members.sizes, root, placing, seed, types=made)


def reducing(
    name: str,
    members: Members,
    operand: Operand,
    operator: Operator,
    total: int,
    parts: list[int],
    root: int | None,
    in_place: bool,
    seed: int,
) -> Call:
    """A call that combines `total` elements of each member; `parts` says what each gets of a reduce_scatter."""
    whole = range(members.size)
    placing = [m for m in whole if root in (None, m)] if in_place and len(members.sizes) == 1 else []
    everything = lined_up(operand.kind, total)
    terms: list[tuple[Sequence[int], int, int]] = []
    for m in whole:
        whose = {"scan": range(m + 1), "exscan": range(m)}.get(name, members.sources[m])
        first = sum(parts[one] for one in members.group(m) if one < m) if parts else 0
        terms.append((whose, first, parts[m] if parts else total if root in (None, m) else 0))
    giving = [root is None or m in members.sources[root] for m in whole]
    sends = [everything if giving[m] and m not in placing else None for m in whole]
    receives = [
        everything if m in placing else lined_up(operand.kind, terms[m][2]) if root in (None, m) else None
        for m in whole
    ]
    return Call(
        name, sends, receives, [], members.sizes, root, placing, seed, operand, operator, total, terms, parts
    )


def split(draw: random.Random, total: int, parts: int) -> list[int]:
    """Into parts of any lengths."""
    cuts = sorted(draw.choice([0, total, draw.randrange(total + 1)]) for _ in range(parts - 1))
    return [b - a for a, b in zip([0, *cuts], [*cuts, total], strict=True)]


def shares(draw: random.Random, name: str, members: Members, total: int) -> tuple[int, list[int]]:
    """What each member gets of a reduce_scatter, or of its form of equal blocks, of about `total` elements."""
    if name == "reduce_scatter":
        return total, sum([split(draw, total, size) for size in members.sizes], [])
    if name == "reduce_scatter_block":
        grain = int(np.lcm.reduce(members.sizes))
        total = -(-total // grain) * grain
        return total, [total // size for size in members.sizes for _ in range(size)]
    return total, []


def drawn(draw: random.Random, name: str, members: Members, longest: int = 1 << 20) -> Call:
    """A random call of that name."""
    root = draw.randrange(members.size) if name in ROOTED else None
    seed, in_place = draw.randrange(1 << 30), draw.random() < 0.3
    if name not in REDUCTIONS:
        if name == "barrier" or draw.random() < 0.85:
            among = family(draw.choice(FAMILIES))
            return moving(
                draw, name, members, among, lengths(draw, among, members.size), root, in_place, seed
            )
        among = nested(draw)
        call = moving(draw, name, members, among, lengths(draw, among, members.size), root, in_place, seed)
        call.types += among
        return call
    operand = OPERANDS[draw.choice(list(OPERANDS))]
    operator = operand.operators[draw.choice(list(operand.operators))]
    among = [operand.kind]
    total = min(lengths(draw, among, 1)(), longest)
    if operand.dtype.names:
        total = min(total, 5000)
    total, parts = shares(draw, name, members, total)
    return reducing(name, members, operand, operator, total, parts, root, in_place, seed)


def given(case: dict, members: Members) -> Call:
    """The call of a case that says name, dtype, count (of a block), root, in_place, operator and seed; numbers are taken
    modulo what there is, and what does not fit the type is replaced."""
    name, count, draw = case["op"], case["count"], random.Random(case["seed"])
    if count * members.size > 300000:
        count //= members.size
    root = case["root"] % members.size if name in ROOTED else None
    if name not in REDUCTIONS:
        among = family(case["dtype"])[:2] if count and case.get("shapes", True) else [plain(case["dtype"])]
        return moving(draw, name, members, among, lambda: count, root, case["in_place"], case["seed"])
    operand = OPERANDS["u4" if case["operator"] == "composed" else case["dtype"]]
    operator = operand.operators.get(case["operator"]) or operand.operators["sum"]
    total, parts = count, []
    if name.startswith("reduce_scatter"):
        total = count * members.size
        equal = name == "reduce_scatter_block" or case["root"] % 3 == 0
        parts = [count] * members.size if equal else split(draw, total, members.size)
    return reducing(name, members, operand, operator, total, parts, root, case["in_place"], case["seed"])
