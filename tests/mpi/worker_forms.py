"""Random collectives in all their forms: blocking, non-blocking and persistent, many at a time, against a model.

Arguments: seed, rounds. Every rank draws the same calls; only the order in which it starts and completes them is its own.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD


class First:
    """What the lowest rank has given: associative, but not commutative."""

    @staticmethod
    def combine(given: MPI.buffer, result: MPI.buffer, _: MPI.Datatype) -> None:
        """As MPI calls it."""
        result[:] = given

    @staticmethod
    def reduce(operands: list[np.ndarray]) -> np.ndarray:
        """Of all."""
        return operands[0]


OPERATORS: dict[str, tuple[MPI.Op, object]] = {
    "first": (MPI.Op.Create(First.combine, commute=False), First),
    "sum": (MPI.SUM, np.add),
    "max": (MPI.MAX, np.maximum),
    "bxor": (MPI.BXOR, np.bitwise_xor),
    "prod": (MPI.PROD, np.multiply),
}
ROOTED = {"bcast", "reduce", "gather", "scatter"}
REDUCING = {"reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan"}
# What a rank gives and gets, in blocks; p stands for one of each rank.
SHAPES = {
    "barrier": (0, 0),
    "bcast": (1, 1),
    "reduce": (1, 1),
    "allreduce": (1, 1),
    "allgather": (1, "p"),
    "alltoall": ("p", "p"),
    "gather": (1, "p"),
    "scatter": ("p", 1),
    "reduce_scatter": ("p", 1),
    "reduce_scatter_block": ("p", 1),
    "scan": (1, 1),
    "exscan": (1, 1),
    "allgatherv": (1, "p"),
    "gatherv": (1, "p"),
    "scatterv": ("p", 1),
    "alltoallv": ("p", "p"),
    "neighbor_alltoall": ("p", "p"),
    "neighbor_allgather": (1, "p"),
}
# Of the engine, and those that are made of edges.
NAMES = list(SHAPES)
COUNTS = (0, 1, 2, 7, 100, 1000, 20000)
GAP = 3  # every third element of memory belongs to a strided block


@dataclass
class Plan:
    """A collective, as all ranks know it."""

    name: str
    count: int
    root: int
    operator: str
    in_place: bool
    strided_send: bool
    strided_recv: bool
    number: int
    graph: bool = field(init=False)

    def __post_init__(self) -> None:
        self.graph = self.name.startswith("neighbor")


def draw(rng: random.Random, size: int, number: int, graph: bool) -> Plan:
    """The same on all ranks."""
    names = [name for name in NAMES if name.startswith("neighbor") == graph]
    name = rng.choice(names)
    plan = Plan(
        name,
        rng.choice(COUNTS),
        rng.randrange(size),
        rng.choice(list(OPERATORS)),
        rng.random() < 0.3,
        rng.random() < 0.2,
        rng.random() < 0.2,
        number,
    )
    if name in ("bcast", "barrier") or graph or name.endswith("v"):
        plan.in_place = False
    if name in REDUCING or plan.in_place:
        plan.strided_send = plan.strided_recv = False
    if name == "bcast":
        plan.strided_send = plan.strided_recv
    return plan


def given(plan: Plan, rank: int, round_: int, blocks: int) -> np.ndarray:
    """What a rank gives: [blocks, count]."""
    seed = plan.number * 1_000_003 + rank * 10_007 + round_ * 101
    base = (np.arange(blocks * plan.count, dtype=np.int64) * 2654435761 + seed * 40503) & 0x7FFF
    return base.reshape(blocks, plan.count)


class Buffer:
    """Blocks of elements in memory, dense or with gaps that must not change."""

    def __init__(self, blocks: int, count: int, strided: bool) -> None:
        self.blocks, self.count, self.step = blocks, count, GAP if strided else 1
        self.memory = np.full(max(blocks * count * self.step, 1), -7, dtype=np.int64)
        self.type = MPI.INT64_T
        if strided:
            self.type = MPI.INT64_T.Create_resized(0, 8 * GAP).Commit()

    def spec(self, count: int) -> list:
        """As an argument of so many elements for each block."""
        return [self.memory, count, self.type]

    def varying(self, blocks: int) -> list:
        """As an argument of a call of varying lengths."""
        counts = [self.count] * blocks
        return [self.memory, counts, [k * self.count for k in range(blocks)], self.type]

    @property
    def values(self) -> np.ndarray:
        """What lies in the blocks."""
        return self.memory[:: self.step][: self.blocks * self.count].reshape(self.blocks, self.count)

    def fill(self, values: np.ndarray) -> None:
        """Puts values there."""
        self.memory[:: self.step][: values.size] = values.ravel()

    def intact(self) -> bool:
        """Whether the gaps are as they were."""
        used = self.memory[: self.blocks * self.count * self.step]
        return self.step == 1 or bool((used.reshape(-1, self.step)[:, 1:] == -7).all())

    def free(self) -> None:
        """Of the type, which may be in use."""
        if self.step != 1:
            self.type.Free()


class Operation:
    """A plan with this rank's buffers."""

    def __init__(self, plan: Plan, comm: MPI.Comm, sources: list[int], targets: list[int]) -> None:
        self.plan, self.comm = plan, comm
        self.sources, self.targets = sources, targets
        self.size, self.rank = comm.size, comm.rank
        give, get = SHAPES[plan.name]
        given_parts = len(targets) if plan.graph else self.size
        got_parts = len(sources) if plan.graph else self.size
        self.gives = given_parts if give == "p" else give
        self.gets = got_parts if get == "p" else get
        self.is_root = self.rank == plan.root
        if plan.name == "reduce_scatter":
            self.gets = 2
        self.recv = Buffer(max(self.gets, self.gives if plan.in_place else 0), plan.count, plan.strided_recv)
        self.send = self.recv if plan.name == "bcast" else Buffer(self.gives, plan.count, plan.strided_send)
        self.in_place = plan.in_place and (plan.name not in ("reduce", "gather", "scatter") or self.is_root)

    def prepare(self, round_: int) -> None:
        """Writes what is given."""
        plan = self.plan
        if plan.name == "barrier":
            return
        self.recv.fill(np.full((self.recv.blocks, plan.count), -1, dtype=np.int64))
        mine = given(plan, self.rank, round_, self.gives)
        if not self.in_place:
            if plan.name != "bcast" or self.is_root:
                self.send.fill(mine)
        elif plan.name in ("allgather", "gather"):
            self.recv.values[self.rank if plan.name == "allgather" else plan.root][:] = mine[0]
        elif plan.name == "scatter":
            self.send.fill(mine)
        else:
            self.recv.fill(mine)

    def arguments(self) -> tuple:
        """As the methods of mpi4py take them."""
        plan, n, p = self.plan, self.plan.count, self.size
        name = plan.name
        if name == "barrier":
            return ()
        if name == "bcast":
            return self.recv.spec(n), plan.root
        send: object = MPI.IN_PLACE if self.in_place and name != "scatter" else self.send.spec(n)
        recv: object = MPI.IN_PLACE if self.in_place and name == "scatter" else self.recv.spec(n)
        if name == "allgatherv":
            recv = self.recv.varying(p)
        elif name == "gatherv":
            recv = self.recv.varying(p) if self.is_root else None
        elif name == "scatterv":
            send = self.send.varying(p) if self.is_root else None
        elif name == "alltoallv":
            send, recv = self.send.varying(p), self.recv.varying(p)
        if name == "gather" and not self.is_root:
            recv = None
        if name == "reduce" and not self.is_root:
            recv = None
        if name == "scatter" and not self.is_root:
            send = None
        if name in REDUCING:
            operator = OPERATORS[plan.operator][0]
            if name == "reduce_scatter":
                # Parts of lengths that differ: the last member gets nothing, the first what is the last one's too.
                send = send if self.in_place else self.send.spec(n * p)
                mine = n * p if self.in_place else self.parts()[self.rank]
                return send, self.recv.spec(mine), self.parts(), operator
            return (send, recv, operator, plan.root) if name == "reduce" else (send, recv, operator)
        rooted = name in ("gather", "scatter", "gatherv", "scatterv")
        return (send, recv, plan.root) if rooted else (send, recv)

    def parts(self) -> list[int]:
        """Of a Reduce_scatter, by rank."""
        n, p = self.plan.count, self.size
        return [n * p] if p == 1 else [2 * n, *[n] * (p - 2), 0]

    def method(self, form: str) -> Callable:
        """Of one form: now, later or planned."""
        name = self.plan.name.capitalize()
        if form == "planned":
            return getattr(self.comm, name + "_init")
        return getattr(self.comm, name if form == "now" else "I" + self.plan.name)

    def expected(self, round_: int) -> np.ndarray | None:
        """[gets, count]; None: nothing."""
        plan, p, me = self.plan, self.size, self.rank
        name = plan.name

        def of(rank: int, blocks: int) -> np.ndarray:
            return given(plan, rank, round_, blocks)

        if name == "barrier":
            return None
        if name == "bcast":
            return of(plan.root, 1)
        if name in ("allgather", "allgatherv"):
            return np.concatenate([of(r, 1) for r in range(p)])
        if name in ("gather", "gatherv"):
            return np.concatenate([of(r, 1) for r in range(p)]) if self.is_root else None
        if name in ("scatter", "scatterv"):
            return of(plan.root, p)[me : me + 1]
        if name in ("alltoall", "alltoallv"):
            return np.stack([of(r, p)[me] for r in range(p)])
        if name == "neighbor_allgather":
            return np.concatenate([of(r, 1) for r in self.sources])
        if name == "neighbor_alltoall":  # a ring: who is before us sends to whom is behind
            return np.stack([of(self.sources[0], 2)[0], of(self.sources[1], 2)[1]])
        fold = OPERATORS[plan.operator][1]
        if name == "reduce_scatter":
            whole = fold.reduce([of(r, p).ravel() for r in range(p)])
            first = sum(self.parts()[:me])
            return whole[first : first + self.parts()[me]].reshape(-1, max(plan.count, 1))
        if name == "reduce_scatter_block":
            return fold.reduce([of(r, p)[me : me + 1] for r in range(p)])
        if name == "reduce" and not self.is_root:
            return None
        last = {"scan": me + 1, "exscan": me}.get(name, p)
        return fold.reduce([of(r, 1) for r in range(last)]) if last else None

    def check(self, round_: int, how: str) -> None:
        """Ends the job where the result is wrong."""
        expected = self.expected(round_)
        if expected is None:
            return
        got = self.recv.values[: len(expected)]
        if self.in_place and self.plan.name == "scatter":
            got, expected = self.send.values, given(self.plan, self.rank, round_, self.gives)
        if not (got == expected).all() or not self.recv.intact():
            print(f"FAILED rank {self.rank} of {self.size}, {how}, round {round_}: {self.plan}", flush=True)
            print(got.ravel()[:8], expected.ravel()[:8], flush=True)
            WORLD.Abort(3)


def complete(own: random.Random, requests: list[MPI.Request]) -> None:
    """All of them, in some order."""
    way = own.randrange(4)
    if way == 0:
        MPI.Request.Waitall(requests)
    elif way == 1:
        while MPI.Request.Waitany(requests) != MPI.UNDEFINED:
            pass
    elif way == 2:
        while not MPI.Request.Testall(requests):
            pass
    else:
        order = list(range(len(requests)))
        own.shuffle(order)
        for i in order:
            requests[i].Wait()


def mixed(rng: random.Random, own: random.Random, comms: list[tuple], number: int) -> None:
    """Non-blocking ones of several communicators outstanding, blocking ones and messages between them."""
    under_way: list[tuple[Operation, MPI.Request]] = []
    for k in range(rng.randrange(2, 24)):
        comm, sources, targets = rng.choice(comms)
        plan = draw(rng, comm.size, number + k, bool(sources))
        operation = Operation(plan, comm, sources, targets)
        operation.prepare(0)
        if rng.random() < 0.25:
            operation.method("now")(*operation.arguments())
            operation.check(0, "blocking")
        else:
            under_way.append((operation, operation.method("later")(*operation.arguments())))
            if rng.random() < 0.3:
                operation.recv.free()  # a type may go when what uses it has begun
            if own.random() < 0.2:
                under_way[own.randrange(len(under_way))][1].Test()
        if rng.random() < 0.2:
            to, source = (WORLD.rank + 1) % WORLD.size, (WORLD.rank - 1) % WORLD.size
            got = WORLD.sendrecv(number + k, to, 3, None, source, 3)
            assert got == number + k
    complete(own, [request for _, request in under_way])
    for operation, _ in under_way:
        operation.check(0, "non-blocking")


def planned(rng: random.Random, own: random.Random, comms: list[tuple], number: int) -> None:
    """Persistent ones, started again and again, by each rank in an order of its own."""
    plans: list[tuple[Operation, MPI.Request]] = []
    for k in range(rng.randrange(1, 10)):
        comm, sources, targets = rng.choice(comms)
        operation = Operation(draw(rng, comm.size, number + k, bool(sources)), comm, sources, targets)
        plans.append((operation, operation.method("planned")(*operation.arguments())))
    for round_ in range(rng.randrange(1, 6)):
        taking_part = [one for one in plans if rng.random() < 0.8]
        for operation, _ in taking_part:
            operation.prepare(round_)
        order = list(taking_part)
        own.shuffle(order)
        if own.random() < 0.5:
            for _, request in order:
                request.Start()
        else:
            MPI.Prequest.Startall([request for _, request in order])
        if rng.random() < 0.5:
            WORLD.Barrier()
        complete(own, [request for _, request in order])
        for operation, _ in taking_part:
            operation.check(round_, "persistent")
    for _, request in plans:
        request.Free()


def outliving(rng: random.Random, number: int) -> None:
    """A communicator is freed while operations of it are under way, and a plan is started afterwards."""
    comm = WORLD.Dup()
    comm.Barrier()
    operations = [Operation(draw(rng, comm.size, number + k, False), comm, [], []) for k in range(4)]
    for operation in operations:
        operation.prepare(0)
    requests = [operation.method("later")(*operation.arguments()) for operation in operations[:2]]
    plans = [operation.method("planned")(*operation.arguments()) for operation in operations[2:]]
    comm.Free()
    MPI.Prequest.Startall(plans)
    MPI.Request.Waitall(requests + plans)
    for plan in plans:
        plan.Free()
    for operation in operations:
        operation.check(0, "of a communicator that was freed")


def has_persistent() -> bool:
    """Whether the host has such collectives, whatever version it names."""
    try:
        MPI.COMM_SELF.Barrier_init().Free()
    except NotImplementedError:
        return False
    return True


def main() -> None:
    """All rounds."""
    seed, rounds = int(sys.argv[1]), int(sys.argv[2])
    persistent = has_persistent()
    rng, own = random.Random(seed), random.Random(seed * 1000 + WORLD.rank)
    p = WORLD.size
    reversed_ = WORLD.Split(0, -WORLD.rank)
    halves = WORLD.Split(WORLD.rank % 2, WORLD.rank)
    fresh = WORLD.Dup()  # its first collective does not block
    ring = WORLD.Create_dist_graph_adjacent(
        [(WORLD.rank - 1) % p, (WORLD.rank + 1) % p], [(WORLD.rank + 1) % p, (WORLD.rank - 1) % p]
    )
    neighbours = [(WORLD.rank - 1) % p, (WORLD.rank + 1) % p]
    comms = [(WORLD, [], []), (reversed_, [], []), (fresh, [], []), (ring, neighbours, neighbours[::-1])]
    for comm, *_ in comms:
        if comm is not fresh:
            comm.Barrier()
    # The halves draw the same calls, but do not wait for each other.
    comms.append((halves, [], [])) if p % 2 == 0 else None
    for round_ in range(rounds):
        number = (round_ + 1) * 100
        mixed(rng, own, comms, number)
        if persistent:
            planned(rng, own, comms, number + 30)
            if round_ % 10 == 0:
                outliving(rng, number + 60)
    fresh.Barrier()
    print(f"rank {WORLD.rank}: {rounds} rounds are good", flush=True)


main()
