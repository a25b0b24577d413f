"""Random reductions across intercommunicators: blocking, non-blocking and planned ones, many of them outstanding, completed
in an order of each rank's own.

    worker_across_reducing.py FIRST SEED CASES [LONGEST]    FIRST ranks in the first group

All bytes of the buffers must be what the standard says: what the operands of the other group make, combined from left to
right in its rank order. Blocking ones are made by the host as well, on the same communicator: its integers are the same.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from intercommunicators import WORLD, free, halves, intercommunicators  # ranks run this file as a script
from mpi4py import MPI

BY_HOST = "LD_PRELOAD" not in os.environ or "BLOCKING_ALONE" in os.environ  # all of them
ROOM = 64  # bytes before and behind what a call reads and writes
LONGEST = int(sys.argv[4]) if len(sys.argv) > 4 else 20000
COUNTS = [n for n in (0, 1, 2, 7, 300, 5000, 20000) if n <= LONGEST]
FORMS = ["blocking", "immediate", "planned"]


@dataclass
class Kind:
    """Elements: how they lie in memory, and what combines them, here and there."""

    name: str
    dtype: np.dtype
    type: MPI.Datatype
    operators: dict[str, tuple[MPI.Op, Callable[[np.ndarray, np.ndarray], np.ndarray]]]
    exact: bool = True  # whether every association makes the same bits
    ordered: tuple[str, ...] = ()  # operators that are not associative: the host may do as it likes


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of matrices of two by two, which does not commute."""
    result = b.copy()
    result["a"], result["b"] = a["a"] * b["a"] + a["b"] * b["c"], a["a"] * b["b"] + a["b"] * b["d"]
    result["c"], result["d"] = a["c"] * b["a"] + a["d"] * b["c"], a["c"] * b["b"] + a["d"] * b["d"]
    return result


def operator(
    dtype: np.dtype, function: Callable[[np.ndarray, np.ndarray], np.ndarray], commutes: bool
) -> MPI.Op:
    """Of the program's."""

    def combine(given: MPI.buffer, result: MPI.buffer, _: MPI.Datatype) -> None:
        a, b = np.frombuffer(given, dtype), np.frombuffer(result, dtype)
        made = function(a, b)
        for name in dtype.names or ():
            b[name] = made[name]
        if not dtype.names:
            b[:] = made

    return MPI.Op.Create(combine, commute=commutes)


def lesser(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """MPI_MINLOC."""
    first = (a["v"] < b["v"]) | ((a["v"] == b["v"]) & (a["i"] < b["i"]))
    return np.where(first, a, b)


def kinds() -> list[Kind]:
    """Each has an operator at least."""
    plain, double = np.dtype("i4"), np.dtype("f8")
    packed = np.dtype([(name, "u4") for name in "abcd"])
    gaps = np.dtype({"names": list("abcd"), "formats": ["u4"] * 4, "offsets": [0, 16, 8, 24], "itemsize": 28})
    pair = np.dtype({"names": ["v", "i"], "formats": ["f8", "i4"], "offsets": [0, 8], "itemsize": 16})
    matrix = MPI.UNSIGNED.Create_contiguous(4).Commit()
    places = MPI.UNSIGNED.Create_hindexed([1] * 4, [0, 16, 8, 24])
    spread = places.Create_resized(0, 28).Commit()
    places.Free()

    def halved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a * 0.5 - b

    return [
        Kind(
            "int",
            plain,
            MPI.INT,
            {
                "sum": (MPI.SUM, np.add),
                "max": (MPI.MAX, np.maximum),
                "xor": (MPI.BXOR, np.bitwise_xor),
                "first": (operator(plain, lambda a, b: a, False), lambda a, b: a),
                "add": (operator(plain, np.add, True), np.add),
            },
        ),
        Kind(
            "double",
            double,
            MPI.DOUBLE,
            {
                "sum": (MPI.SUM, np.add),
                "prod": (MPI.PROD, np.multiply),
                "halved": (operator(double, halved, False), halved),
            },
            exact=False,
            ordered=("halved",),
        ),
        Kind(
            "truth",
            plain,
            MPI.LOGICAL,
            {
                "land": (MPI.LAND, lambda a, b: ((a != 0) & (b != 0)).astype(plain)),
                "lxor": (MPI.LXOR, lambda a, b: ((a != 0) ^ (b != 0)).astype(plain)),
            },
        ),
        Kind("pair", pair, MPI.DOUBLE_INT, {"minloc": (MPI.MINLOC, lesser)}),
        Kind("matrix", packed, matrix, {"product": (operator(packed, product, False), product)}),
        Kind("spread", gaps, spread, {"product": (operator(gaps, product, False), product)}),
    ]


KINDS = kinds()


def split(draw: random.Random, total: int, parts: int) -> list[int]:
    """Into parts of any lengths."""
    cuts = sorted(draw.choice([0, total, draw.randrange(total + 1)]) for _ in range(parts - 1))
    return [b - a for a, b in zip([0, *cuts], [*cuts, total], strict=True)]


class Case:
    """One reduction, drawn alike by all ranks of both groups."""

    def __init__(self, inter: MPI.Intercomm, group: int, seed: int, number: int, forms: list[str]):
        draw = random.Random(seed * 100003 + number)
        self.inter, self.group, self.number = inter, group, number
        self.name = draw.choice(["reduce", "allreduce", "reduce_scatter_block", "reduce_scatter"])
        self.form = draw.choice(forms)
        self.kind = draw.choice(KINDS)
        operator = draw.choice(sorted(self.kind.operators))
        self.op, self.function = self.kind.operators[operator]
        self.by_host_too = self.form == "blocking" and operator not in self.kind.ordered
        # Open MPI 5.0.11 looks at the type of those who move nothing.
        self.by_host_too &= (self.name, self.kind.name) != ("reduce", "pair")
        self.sizes = [inter.size, inter.remote_size] if group == 0 else [inter.remote_size, inter.size]
        self.root_group = draw.randrange(2)
        self.root = draw.randrange(self.sizes[self.root_group])
        self.count = draw.choice(COUNTS)
        if self.kind.name in ("matrix", "spread") or self.op in (MPI.PROD,):
            self.count = min(self.count, 5000)
        p, q = self.sizes
        if self.name == "reduce_scatter_block":
            self.count = self.count // (p * q) if self.count > p * q else min(self.count, 2)
            self.total = self.count * p * q
            self.parts = [[self.count * q] * p, [self.count * p] * q]
        else:
            self.total = self.count
            self.parts = [split(draw, self.total, n) for n in (p, q)]
        self.starts = draw.choice([1, 2, 3]) if self.form == "planned" else 1
        self.started = 0
        self.request = MPI.REQUEST_NULL
        self.sent, self.got = self.memory(self.total), self.memory(self.total)

    def memory(self, count: int) -> np.ndarray:
        return np.zeros(2 * ROOM + count * self.kind.dtype.itemsize, dtype="u1")

    def elements(self, memory: np.ndarray) -> np.ndarray:
        return memory[ROOM : memory.size - ROOM].view(self.kind.dtype)

    def operand(self, group: int, rank: int) -> np.ndarray:
        """What a rank gives in this start: all of its memory."""
        seed = self.number * 1009 + group * 131 + rank * 17 + self.started * 7
        memory = self.memory(self.total)
        memory[:] = (np.arange(memory.size) * 31 + seed) % 251
        data, at = self.elements(memory), np.arange(self.total)
        if self.kind.name == "double":
            data[:] = 1.0 / (1 + (at * 7 + seed) % 1013)
        elif self.kind.name == "truth":
            data[:] = (at + seed) % 3 != 0
        elif self.kind.name == "pair":
            data["v"], data["i"] = (at * 5 + seed) % 4, (at + seed) % 100
        elif self.kind.name == "int":
            data[:] = (at * 2654435761 + seed * 40503) % 65521
        return memory

    def mine(self) -> tuple[int, int]:
        """Which elements of the result this rank gets."""
        if self.name == "allreduce":
            return 0, self.total
        if self.name == "reduce":
            at_root = self.group == self.root_group and self.inter.rank == self.root
            return 0, self.total if at_root else 0
        parts = self.parts[self.group]
        return sum(parts[: self.inter.rank]), parts[self.inter.rank]

    def prepare(self) -> None:
        """The buffers before a start."""
        self.sent[:] = self.operand(self.group, self.inter.rank)
        self.got[:] = (np.arange(self.got.size) * 7) % 253

    def arguments(self) -> list:
        def at(memory: np.ndarray, count: int) -> list:
            return [MPI.memory.frombuffer(memory)[ROOM:], count, self.kind.type]

        if self.name == "reduce_scatter":
            receive = at(self.got, self.mine()[1])
            return [at(self.sent, self.total), receive, self.parts[self.group], self.op]
        count = self.parts[self.group][0] if self.name == "reduce_scatter_block" else self.total
        send, receive = at(self.sent, count), at(self.got, count)
        if self.name != "reduce":
            return [send, receive, self.op]
        if self.group != self.root_group:
            return [send, None, self.op, self.root]
        if self.inter.rank == self.root:
            return [None, receive, self.op, MPI.ROOT]
        return [None, None, self.op, MPI.PROC_NULL]

    def block(self) -> None:
        """By the blocking form."""
        getattr(self.inter, self.name.capitalize())(*self.arguments())

    def begin(self) -> None:
        self.prepare()
        if self.form == "blocking":
            self.block()
        elif self.form == "immediate":
            self.request = getattr(self.inter, "I" + self.name)(*self.arguments())
        elif self.request == MPI.REQUEST_NULL:
            self.request = getattr(self.inter, self.name.capitalize() + "_init")(*self.arguments())
        if self.form == "planned":
            self.request.Start()

    def expected(self) -> np.ndarray:
        memory = (np.arange(self.got.size) * 7 % 253).astype("u1")
        first, count = self.mine()
        if not count:
            return memory
        other = 1 - self.group
        result = self.elements(self.operand(other, 0))
        with np.errstate(all="ignore"):
            for rank in range(1, self.sizes[other]):
                result = self.function(result, self.elements(self.operand(other, rank)))
        into = self.elements(memory)[:count]
        for name in self.kind.dtype.names or ():
            into[name] = result[name][first : first + count]
        if not self.kind.dtype.names:
            into[:] = result[first : first + count]
        return memory

    def check(self, who: str = "ours") -> None:
        expected, got = self.expected(), self.got
        if who == "host" and not self.kind.exact:
            first, count = self.mine()
            a, b = self.elements(expected)[:count], self.elements(got)[:count]
            assert np.allclose(a, b, rtol=1e-9, atol=1e-12), (who, self)
            return
        differ = np.flatnonzero(got != expected)
        assert not differ.size, (who, self, differ[:5], got[differ[:5]], expected[differ[:5]])
        assert (self.sent == self.operand(self.group, self.inter.rank)).all(), (who, self)

    def __repr__(self) -> str:
        return (
            f"{self.form} {self.name} of {self.total} {self.kind.name}, {self.parts}, case {self.number}, "
            f"group {self.group}, rank {self.inter.rank} of {self.sizes}"
        )

    def complete(self, wait: Callable[[MPI.Request], object]) -> Iterator[None]:
        """Waits, checks, and starts again what is planned."""
        while True:
            if self.request != MPI.REQUEST_NULL:
                wait(self.request)
            self.check("host" if BY_HOST else "ours")
            self.started += 1
            if self.started == self.starts:
                break
            self.begin()
            yield
        if self.form == "planned":
            self.request.Free()


def polled(request: MPI.Request) -> None:
    """Until it is complete."""
    while not request.Test():
        pass


def switch(inter: MPI.Intercomm, value: str) -> None:
    """Who serves the communicator from now on."""
    info = MPI.Info.Create({"nearfield": value})
    inter.Set_info(info)
    info.Free()


def can_plan(inter: MPI.Intercomm) -> bool:
    """Whether this mpi4py has planned collectives."""
    try:
        inter.Barrier_init().Free()
    except NotImplementedError:
        return False
    return True


def main() -> None:
    first, seed, cases = map(int, sys.argv[1:4])
    comms = intercommunicators(first)
    names = sorted(comms)
    _, is_first, _ = halves(first)
    draw, own = random.Random(seed), random.Random(seed * 1000 + WORLD.rank)
    forms = [form for form in FORMS if form != "planned" or can_plan(comms["create"])]
    if BY_HOST:
        forms = ["blocking"]
    outstanding: list[Iterator[None]] = []
    compared = 0
    for number in range(cases):
        name = draw.choice(names)
        case = Case(comms[name], int(not is_first), seed, number, forms)
        case.by_host_too &= name != "split"  # plain MPICH 5.0.2 hangs in MPI_Reduce_scatter
        if BY_HOST and not case.by_host_too:
            continue
        if not BY_HOST and case.by_host_too:
            switch(case.inter, "off")
            case.prepare()
            case.block()
            case.check("host")
            switch(case.inter, "on")
            compared += 1
        case.begin()
        running = case.complete(own.choice([MPI.Request.Wait, polled]))
        if case.form == "blocking":
            next(running, None)
        else:
            outstanding.append(running)
        if draw.random() < 0.3:
            while outstanding:
                own.shuffle(outstanding)
                outstanding = [running for running in outstanding if next(running, running) is None]
    while outstanding:
        outstanding = [running for running in outstanding if next(running, running) is None]
    WORLD.Barrier()
    free(comms)
    if WORLD.rank == 0:
        print(
            f"{cases} reductions on {len(names)} intercommunicators, {compared} beside the host, {len(forms)} forms"
        )


if __name__ == "__main__":
    main()
