"""Random one-sided programs and their truth: what every rank does in a round, and what memory and results have to be.

All ranks of a window's communicator make the same plan from the same seed. A round consists of stages; between two
stages everybody has synchronised with everybody. Within a stage a byte of a window has one *claim*, so that what comes
out is defined:

- read: anybody gets it, nobody writes;
- own: one origin works on it, and orders what it does there by flushes, or by the order of equal accumulates;
- shared: accumulates of one operator and type by anybody, which commute;
- chain: atomic operations that fetch, by anybody, until the round ends. What they fetched must be the steps of some
  path from the value before to the value after.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tests.mpi.oracle.windows import (
    BASICS,
    BYTES,
    OPERATORS,
    SWAPPED,
    Basic,
    Layout,
    combine,
    layout,
    structs,
)

BYTE = next(b for b in BASICS if b.name == BYTES[0][0])
MIXED = [b for b in BASICS if b.significant().all() and b.kind != "pair"]


@dataclass
class Space:
    """Bytes `low` to `high` of a rank's memory, of one type or of any; the window's unit divides `low`, as does the type."""

    low: int
    high: int
    basic: Basic | None


@dataclass
class Op:
    """One operation. Bytes are in the order of the layouts' elements."""

    name: str  # of MPI, without R and _c
    origin: int
    target: int | None  # None is MPI_PROC_NULL
    base: int  # in the target's memory
    there: Layout
    here: Layout
    result: Layout | None
    basic: Basic | None
    operator: str
    given: bytes
    compare: bytes
    chain: bool
    number: int
    request: bool = False
    large: bool = False
    fetched: bytes | None = None  # what has to come, unless it is a chain

    @property
    def significant(self) -> np.ndarray:
        """Which bytes of the elements are not padding."""
        total = int(self.there.lengths.sum())
        return np.ones(total, bool) if self.basic is None else np.resize(self.basic.significant(), total)


@dataclass
class Flush:
    """Completion in the middle of an epoch; `target` None is all."""

    origin: int
    target: int | None
    local: bool
    relock: bool = False


@dataclass
class Stage:
    """What is done between two points at which all synchronise; memory and what of it is not defined, afterwards."""

    items: list[Op | Flush] = field(default_factory=list)
    memory: list[np.ndarray] = field(default_factory=list)
    vague: list[np.ndarray] = field(default_factory=list)


class Plan:
    """One round on a window whose ranks have `regions` of memory, each (first byte, length), and displacement units."""

    def __init__(self, rng: random.Random, regions: list[list[tuple[int, int]]], units: list[int]) -> None:
        self.rng, self.units = rng, units
        self.ranks = len(regions)
        self.sizes = [sum(length for _, length in mine) for mine in regions]
        seeded = np.random.default_rng(rng.getrandbits(32))
        self.memory = [seeded.integers(0, 256, size, np.uint8) for size in self.sizes]
        self.vague = [np.zeros(size, bool) for size in self.sizes]
        self.spaces = [
            [space for region in mine for space in self.divide(r, *region)] for r, mine in enumerate(regions)
        ]
        self.initial = [memory.copy() for memory in self.memory]
        self.table: list[tuple] = [("free",)]
        self.claims = [np.zeros(size, np.int32) for size in self.sizes]
        self.flushes = [[0] * self.ranks for _ in range(self.ranks)]
        self.stages: list[Stage] = []
        self.chains: list[Op] = []
        self.operations = 0

    def divide(self, rank: int, start: int, length: int) -> list[Space]:
        """Cuts a region into spaces, and gives those of a type values of it."""
        rng, spaces, at = self.rng, [], start
        while at < start + length:
            basic = rng.choice(BASICS) if rng.random() < 0.75 else None
            step = math.lcm(self.units[rank], basic.size if basic else 1)
            low = start + -(-(at - start) // step) * step
            high = min(start + length, low + rng.choice([1, 4, 40, length]) * step)
            if basic:
                high = low + (high - low) // basic.size * basic.size
            if high <= low:
                break
            if basic:
                values = basic.values(rng, (high - low) // basic.size)
                self.memory[rank][low:high] = values.view(np.uint8)
            spaces.append(Space(low, high, basic))
            at = high
        return spaces

    def stage(
        self, count: int, targets: Callable[[int], list[int]], passive: bool, requests: bool, flushes: bool
    ) -> None:
        """Adds a stage of about `count` operations; `targets` says whom an origin may reach."""
        stage, rng = Stage(), self.rng
        for _ in range(count):
            origin = rng.randrange(self.ranks)
            reached = targets(origin)
            if not reached:
                continue
            if flushes and rng.random() < 0.2:
                flush = Flush(origin, rng.choice([*reached, None]), rng.random() < 0.4, rng.random() < 0.15)
                if not flush.local:
                    for target in range(self.ranks) if flush.target is None else [flush.target]:
                        self.flushes[origin][target] += 1
                stage.items.append(flush)
            op = self.operation(origin, None if rng.random() < 0.03 else rng.choice(reached))
            if op:
                op.request = (
                    requests and op.name not in ("Fetch_and_op", "Compare_and_swap") and rng.random() < 0.4
                )
                op.large = rng.random() < 0.5
                stage.items.append(op)
        stage.memory = [memory.copy() for memory in self.memory]
        stage.vague = [vague.copy() for vague in self.vague]
        self.stages.append(stage)
        for claims in self.claims:
            keep = np.array([claim[0] == "chain" for claim in self.table])
            claims[~keep[claims]] = 0

    def operation(self, origin: int, target: int | None) -> Op | None:
        """One more operation, applied to the model; None where no bytes were to be had."""
        for _ in range(4):
            op = self.invent(origin, target)
            if target is None or self.claim(op):
                self.operations += 1
                if target is not None:
                    self.apply(op)
                return op
        return None

    def invent(self, origin: int, target: int | None) -> Op:
        rng = self.rng
        spaces = self.spaces[target] if target is not None else []
        space = rng.choice(spaces) if spaces else Space(0, 0, rng.choice([*BASICS, None]))
        name = rng.choice(["Put", "Get"])
        basic, room, operator = space.basic, space.high - space.low, "REPLACE"
        if basic is None:
            members = [rng.choice(MIXED) for _ in range(rng.randrange(1, 5))]
            there = structs(rng, members, rng.choice([1, 2, 7]))
            here = structs(rng, members, there.count)
            if there.span > room or rng.random() < 0.4:
                n = min(rng.choice([room, rng.randrange(room + 1)]), room)
                there, here = layout(rng, BYTE, n, 1), layout(rng, BYTE, n)
            step = self.units[target] if target is not None else 1
        else:
            n = min(rng.choice([0, 1, 1, 1, 2, 6, 24, 35, room]), room // basic.size)
            kind = rng.random()
            if kind < 0.75:
                name = rng.choice(
                    ["Accumulate", "Accumulate", "Get_accumulate", "Fetch_and_op", "Compare_and_swap"]
                )
                reads = [] if name == "Accumulate" else ["NO_OP"]
                operator = rng.choice([*OPERATORS[basic.kind] * 3, "REPLACE", *reads])
                if name == "Compare_and_swap" and basic not in SWAPPED:
                    name = "Get_accumulate"
            if name in ("Fetch_and_op", "Compare_and_swap"):
                n = min(1, room // basic.size)
                if not n and target is not None:
                    name = "Put"
            single = name in ("Fetch_and_op", "Compare_and_swap")
            n = max(n, 1) if single else n
            here = layout(rng, basic, n, 1 if single else 8)
            there = layout(rng, basic, n, 1 if single else 8)
            if there.span > room:
                there = layout(rng, basic, n, 1)
            step = math.lcm(self.units[target] if target is not None else 1, basic.size)
        base = space.low + step * rng.randrange((room - there.span) // step + 1) if room >= there.span else 0
        values = (
            basic.values(rng, len(here.offsets)).tobytes()
            if basic
            else rng.randbytes(int(here.lengths.sum()))
        )
        fetches = name in ("Get", "Get_accumulate", "Fetch_and_op", "Compare_and_swap")
        result = here if name == "Get" else None
        if name == "Get_accumulate":
            result = layout(rng, basic, n)
        elif fetches and name != "Get":
            result = here
        chain = fetches and name != "Get" and rng.random() < 0.6
        compare = b""
        if name == "Compare_and_swap":
            operator = "CAS"
            compare = basic.values(rng, 1).tobytes()
            if target is not None and rng.random() < 0.5:
                compare = self.memory[target][base : base + basic.size].tobytes()
        return Op(
            name,
            origin,
            target,
            base,
            there,
            here,
            result,
            basic,
            operator,
            values,
            compare,
            chain,
            self.operations,
        )

    def claim(self, op: Op) -> bool:
        """Claims the target's bytes; False where that would leave undefined what comes out."""
        assert op.target is not None
        claims = self.claims[op.target]
        places = op.base + op.there.places
        flushed = self.flushes[op.origin][op.target]
        accumulates = op.name not in ("Put", "Get")
        if op.name == "Get" and self.rng.random() < 0.7:
            wanted = ("read",)
        elif op.chain:
            # All operators of a chain are one, or read: the standard's default for concurrent accumulates.
            wanted = ("chain", op.basic.name, op.operator if op.operator != "NO_OP" else "SUM")
            if op.operator == "NO_OP" and "SUM" not in OPERATORS[op.basic.kind]:
                return False
        elif op.name == "Accumulate" and self.commutes(op) and self.rng.random() < 0.6:
            wanted = ("shared", op.basic.name, op.operator)
        else:
            wanted = ("own", op.origin, flushed, (op.basic.name, op.operator) if accumulates else None)
        found = [self.table[k] for k in np.unique(claims[places])]
        if not all(self.compatible(old, wanted) for old in found):
            return False
        self.table.append(wanted)
        if op.operator == "NO_OP":  # claims that name an operator say more
            keep = [k for k, old in enumerate(self.table) if old[0] == "own" and old[2] == flushed and old[3]]
            places = places[~np.isin(claims[places], keep)]
        claims[places] = len(self.table) - 1
        return True

    @staticmethod
    def commutes(op: Op) -> bool:
        """Whether the order of several is not seen; the sign of a zero in a product of complex numbers tells it."""
        return op.operator != "REPLACE" and (op.basic.kind, op.operator) != ("complex", "PROD")

    @staticmethod
    def compatible(old: tuple, new: tuple) -> bool:
        if old == ("free",):
            return True
        if old[0] != "own" or new[0] != "own":
            return old == new
        same = old[3] and new[3] and old[3][0] == new[3][0]
        joins = same and (old[3][1] == new[3][1] or "NO_OP" in (old[3][1], new[3][1]))
        return old[1] == new[1] and (old[2] < new[2] or bool(joins))

    def apply(self, op: Op) -> None:
        """Changes the model as the operation changes memory."""
        assert op.target is not None
        memory, vague = self.memory[op.target], self.vague[op.target]
        places = op.base + op.there.places
        if op.chain:
            self.chains.append(op)
            vague[places] = True
            return
        before = memory[places]
        op.fetched = before.tobytes()
        if op.name == "Get":
            return
        vague[places[~op.significant]] = True
        if op.basic is None:
            memory[places] = np.frombuffer(op.given, np.uint8)
            return
        memory[places] = np.frombuffer(step(op, op.fetched, op.given), np.uint8)


def step(op: Op, there: bytes, given: bytes) -> bytes:
    """What the operation makes of bytes of its target."""
    if op.name == "Put":
        return given
    if op.name == "Compare_and_swap":
        return given if there == op.compare else there
    dtype = op.basic.dtype
    return combine(op.operator, np.frombuffer(there, dtype), np.frombuffer(given, dtype)).tobytes()
