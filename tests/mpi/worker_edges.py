"""Random collectives whose blocks differ, and of neighbours, against the host's own results and a model.

Arguments: seed; then for each kind of case its name and how many, as in vector=20.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from edges import (  # ranks run this file as a script: its directory is searched
    OF_NEIGHBOURS,
    SIDES,
    Call,
    Neighbours,
    Running,
    has,
    neighbour_call,
    vector_call,
)
from mpi4py import MPI

WORLD = MPI.COMM_WORLD


def fail(what: str) -> None:
    """Ends the job."""
    print(f"FAILED rank {WORLD.rank} of {WORLD.size}: {what}", flush=True)
    WORLD.Abort(3)


def without(comm: MPI.Intracomm) -> MPI.Intracomm:
    """A duplicate that the host serves."""
    made = comm.Dup()
    info = MPI.Info.Create({"nearfield": "off"})
    made.Set_info(info)
    info.Free()
    return made


class Both:
    """A communicator and a duplicate that the host serves, and who is whose neighbour there."""

    def __init__(self, ours: MPI.Intracomm) -> None:
        self.ours, self.theirs = ours, without(ours)
        self.near = Neighbours.of(ours) if isinstance(ours, MPI.Topocomm) else None

    def draw(self, draw: random.Random, immediate: bool) -> Call:
        """A call that it allows."""
        if self.near and draw.random() < 0.8:
            return neighbour_call(draw, self.near)
        return vector_call(draw, self.ours.size, immediate)

    def free(self) -> None:
        """Frees both."""
        self.ours.Free()
        self.theirs.Free()


def grid(draw: random.Random, comm: MPI.Intracomm) -> MPI.Intracomm:
    """A random grid of one to three dimensions of the ranks, or null on those that it has no place for."""
    dimensions = draw.randrange(1, 4)
    size = comm.size - (comm.size > 2 and draw.random() < 0.3)
    shape = MPI.Compute_dims(size, dimensions)
    draw.shuffle(shape)
    return comm.Create_cart(shape, [draw.random() < 0.6 for _ in shape])


def graph(draw: random.Random, comm: MPI.Intracomm) -> MPI.Intracomm:
    """A random symmetric graph with duplicate edges and self edges."""
    nodes = comm.size - (comm.size > 2 and draw.random() < 0.3)
    lists: list[list[int]] = [[] for _ in range(nodes)]
    for _ in range(draw.randrange(2 * nodes + 1)):
        a, b = draw.randrange(nodes), draw.randrange(nodes)
        lists[a].append(b)
        if a != b:
            lists[b].append(a)
    index = [0, *np.cumsum([len(one) for one in lists]).tolist()]
    return comm.Create_graph(index, sum(lists, []))


def distributed(draw: random.Random, comm: MPI.Intracomm) -> MPI.Intracomm:
    """A random directed graph with duplicate edges and self edges, each rank's in an order of its own."""
    p, me = comm.size, comm.rank
    lonely = draw.randrange(-p, p)  # has no edges
    pairs = [(draw.randrange(p), draw.randrange(p)) for _ in range(draw.randrange(3 * p + 1))]
    pairs = [(a, b) for a, b in pairs if lonely not in (a, b)]
    sources, targets = [a for a, b in pairs if b == me], [b for a, b in pairs if a == me]
    if draw.random() < 0.3:  # each edge from any rank
        mine = [pair for number, pair in enumerate(pairs) if number % p == me]
        return comm.Create_dist_graph([a for a, _ in mine], [1] * len(mine), [b for _, b in mine])
    own = random.Random(draw.randrange(1 << 30) + me)
    own.shuffle(sources)
    own.shuffle(targets)
    return comm.Create_dist_graph_adjacent(sources, targets)


TOPOLOGIES = [grid, grid, graph, distributed, distributed]


def topology(draw: random.Random, comm: MPI.Intracomm) -> Both | None:
    """A communicator with a random topology; nothing on ranks that are not in it."""
    made = draw.choice(TOPOLOGIES)(draw, comm)
    return Both(made) if made != MPI.COMM_NULL else None


def fork(draw: random.Random) -> random.Random:
    """Numbers of their own, so that ranks that draw fewer go on alike."""
    return random.Random(draw.randrange(1 << 30))


def large(draw: random.Random, name: str, immediate: bool) -> bool:
    """Whether to call the form of large counts."""
    return draw.random() < 0.5 and has(name, immediate, True)


def compare(call: Call, both: Both, immediate: bool, large: bool) -> None:
    """One call by Nearfield and by the host."""
    results = []
    sides = [(both.ours, "Nearfield"), (both.theirs, "the host")]
    for comm, by in sides if not both.near or both.near.host_agrees(immediate) else sides[:1]:
        one = Running(call, comm, immediate, large)
        one_by_one(one.requests)
        if wrong := one.wrong():
            fail(f"{call}, immediate {immediate}, large {large}, by {by}: {wrong}")
        results.append(one.result)
    if not np.array_equal(results[0], results[-1]):
        fail(f"{call}, immediate {immediate}, large {large}: not what the host gives")
    call.free()


def form(draw: random.Random, name: str, immediate: bool) -> bool:
    """Whether to call the form of large counts."""
    return draw.random() < 0.5 and has(name, immediate, True)


class Vectors:
    """v-forms, blocking and not, on communicators of all kinds."""

    def __init__(self, draw: random.Random) -> None:
        halves = WORLD.Split(WORLD.rank % 2, -WORLD.rank)
        self.comms = [Both(WORLD.Dup()), Both(WORLD.Dup()), Both(halves), Both(MPI.COMM_SELF.Dup())]

    def __call__(self, draw: random.Random) -> None:
        both, immediate = draw.choice(self.comms), draw.random() < 0.4
        call = vector_call(fork(draw), both.ours.size, immediate)
        compare(call, both, immediate, large(draw, call.name, immediate))


class Topologies:
    """Calls among neighbours, and others, in several topologies; some are freed and made anew."""

    def __init__(self, draw: random.Random) -> None:
        self.all = [topology(draw, WORLD) for _ in range(4)]

    def __call__(self, draw: random.Random) -> None:
        number, immediate = draw.randrange(len(self.all)), draw.random() < 0.4
        own = fork(draw)
        if draw.random() < 0.15:
            if self.all[number]:
                self.all[number].free()
            self.all[number] = topology(fork(draw), WORLD)
        both = self.all[number]
        if both:
            call = both.draw(own, immediate)
            compare(call, both, immediate, large(own, call.name, immediate))


class Message:
    """A message to another rank of a communicator and one from another; what is sent may be let go of at once."""

    def __init__(self, comm: MPI.Intracomm, step: int, length: int, tag: int, let_go: bool) -> None:
        p, me = comm.size, comm.rank
        self.sent, self.result = self.data(me, length, tag), np.zeros(length, "i4")
        self.expected = self.data((me - step) % p, length, tag)
        self.requests = [
            comm.Irecv(self.result, (me - step) % p, tag),
            comm.Isend(self.sent, (me + step) % p, tag),
        ]
        if let_go:
            self.requests.pop().Free()

    @staticmethod
    def data(rank: int, length: int, tag: int) -> np.ndarray:
        """What that rank sends."""
        return np.arange(length, dtype="i4") * (rank + 1) + tag

    def wrong(self) -> str:
        """As of a collective."""
        return "" if np.array_equal(self.result, self.expected) else "a message differs"


def one_by_one(requests: list[MPI.Request]) -> None:
    """Waits for each."""
    for request in requests:
        request.Wait()


def any_first(requests: list[MPI.Request]) -> None:
    """Waits for whichever is first, until none is left."""
    while MPI.Request.Waitany(requests) != MPI.UNDEFINED:
        pass


def some_first(requests: list[MPI.Request]) -> None:
    """Waits for whichever are first, until none is left."""
    while MPI.Request.Waitsome(requests) is not None:
        pass


def tested(requests: list[MPI.Request]) -> None:
    """Tests each in turn."""
    while requests:
        requests = [request for request in requests if not request.Test()]
        os.sched_yield()


def tested_together(requests: list[MPI.Request]) -> None:
    """Tests all at once."""
    while not MPI.Request.Testall(requests):
        os.sched_yield()


def tested_for_any(requests: list[MPI.Request]) -> None:
    """Tests for any, until none is left."""
    while any(requests):
        MPI.Request.Testany(requests)
        os.sched_yield()


WAYS: list[Callable[[list[MPI.Request]], object]] = [
    MPI.Request.Waitall,
    one_by_one,
    any_first,
    some_first,
    tested,
    tested_together,
    tested_for_any,
]


class Mixes:
    """Dozens of non-blocking operations outstanding on three communicators, among blocking ones and messages."""

    def __init__(self, draw: random.Random) -> None:
        first = WORLD.Dup()
        self.comms = [Both(first), Both(first.Dup()), topology(draw, first), topology(draw, first)]

    def __call__(self, draw: random.Random) -> None:
        own = random.Random(draw.randrange(1 << 30) + WORLD.rank)  # differs between ranks
        outstanding: list[Running | Message] = []
        done: list[Running | Message] = []
        calls: list[tuple[Both, Call]] = []
        for _ in range(draw.randrange(2, 6)):
            # The order on a communicator is everybody's, that between communicators each rank's own.
            queues: list[list[Callable[[], Running | Message]]] = [[] for _ in self.comms]
            for _ in range(draw.randrange(1, 14)):
                number, seed = draw.randrange(len(self.comms)), fork(draw)
                if both := self.comms[number]:
                    queues[number].append(self.drawn(seed, own, both, calls))
            while left := [queue for queue in queues if queue]:
                outstanding.append(own.choice(left).pop(0)())
            for _ in range(draw.randrange(3)):
                both, seed = draw.choice(self.comms), fork(draw)
                if both:
                    self.blocking(seed, both)
            some = own.sample(outstanding, own.randrange(len(outstanding) + 1))
            self.finish(own, some)
            done += some
            outstanding = [one for one in outstanding if one not in some]
        self.finish(own, outstanding)
        for one in done + outstanding:
            if wrong := one.wrong():
                fail(f"{getattr(one, 'call', 'message')} among others: {wrong}")
        self.compare(calls, done + outstanding)

    @staticmethod
    def drawn(
        draw: random.Random, own: random.Random, both: Both, calls: list[tuple[Both, Call]]
    ) -> Callable[[], Running | Message]:
        """What starts a random non-blocking operation."""
        if draw.random() < 0.3:
            step, length, tag = (
                draw.randrange(both.ours.size),
                draw.choice([1, 100, 30000]),
                draw.randrange(100),
            )
            return lambda: Message(both.ours, step, length, tag, own.random() < 0.3)
        call = both.draw(draw, True)
        calls.append((both, call))
        with_large = large(draw, call.name, True)
        return lambda: Running(call, both.ours, True, with_large)

    @staticmethod
    def blocking(draw: random.Random, both: Both) -> None:
        """A random blocking operation."""
        comm = both.ours
        name = draw.choice(["barrier", "allreduce", "alltoallv", "gatherv"])
        if name == "barrier":
            comm.Barrier()
        elif name == "allreduce":
            total = np.zeros(draw.choice([1, 5000]), "i8")
            comm.Allreduce(np.full(len(total), comm.rank + 1, "i8"), total)
            if not (total == comm.size * (comm.size + 1) // 2).all():
                fail("allreduce among others")
        else:
            call = vector_call(draw, comm.size, False, name)
            if wrong := Running(call, comm, False, large(draw, name, False)).wrong():
                fail(f"{call}, blocking among others: {wrong}")
            call.free()

    @staticmethod
    def finish(own: random.Random, some: list[Running | Message]) -> None:
        """Completes them in a random order, in a random way."""
        requests = [request for one in some for request in one.requests]
        own.shuffle(requests)
        half = own.randrange(len(requests) + 1)
        for part in (requests[:half], requests[half:]):
            if part:
                own.choice(WAYS)(part)

    @staticmethod
    def compare(calls: list[tuple[Both, Call]], done: list[Running | Message]) -> None:
        """Compares all with what the host's blocking calls give, one after another."""
        by_call = {id(one.call): one for one in done if isinstance(one, Running)}
        for both, call in calls:
            if both.near and not both.near.host_agrees(False):
                call.free()
                continue
            host = Running(call, both.theirs, False, False)
            one_by_one(host.requests)
            if not np.array_equal(host.result, by_call[id(call)].result):
                fail(f"{call} among others: not what the host gives")
            call.free()


class Lifetimes:
    """Communicators that are freed, also with calls under way, while others are made that may take their places."""

    def __init__(self, draw: random.Random) -> None:
        self.kept = Both(WORLD.Dup())

    def __call__(self, draw: random.Random) -> None:
        parent = WORLD.Dup()
        child = parent.Split((WORLD.rank * draw.randrange(1, 4)) // 2 % 2, draw.choice([-1, 1]) * WORLD.rank)
        under_way = [
            Running(vector_call(fork(draw), comm.size, True, name), comm, True, False)
            for comm, name in ((parent, "allgatherv"), (child, "gatherv"), (parent, "alltoallw"))
        ]
        parent.Free()
        new = Both(WORLD.Dup())
        for both in (new, self.kept):
            immediate = draw.random() < 0.5
            compare(vector_call(fork(draw), both.ours.size, immediate), both, immediate, False)
        child.Free()
        if near := topology(fork(draw), new.ours):
            compare(near.draw(fork(draw), True), near, True, False)
            near.free()
        for one in under_way[:: draw.choice([1, -1])]:
            one_by_one(one.requests)
            if wrong := one.wrong():
                fail(f"{one.call} on a communicator that was freed: {wrong}")
            one.call.free()
        new.free()


class Threads:
    """Two threads, each with a communicator of its own."""

    def __init__(self, draw: random.Random) -> None:
        assert MPI.Query_thread() == MPI.THREAD_MULTIPLE
        self.comms = [Both(WORLD.Dup()), Both(WORLD.Dup())]

    def __call__(self, draw: random.Random) -> None:
        threads = [threading.Thread(target=self.calls, args=(fork(draw), both)) for both in self.comms]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    @staticmethod
    def calls(draw: random.Random, both: Both) -> None:
        """What a thread does."""
        try:
            for _ in range(5):
                immediate = draw.random() < 0.4
                call = vector_call(draw, both.ours.size, immediate)
                compare(call, both, immediate, large(draw, call.name, immediate))
        except Exception as error:
            fail(f"in a thread: {error!r}")


def negative_counts(call: Call) -> bool:
    """All counts of all ranks."""
    for side in call.sends + call.receives:
        if side:
            side.counts = [-1] * len(side.counts)
    return True


def null_types(call: Call) -> bool:
    """All types of all ranks."""
    for side in call.sends + call.receives:
        if side:
            side.kinds = [replace(one, type=MPI.DATATYPE_NULL) for one in side.kinds]
    return True


def root_out_of_range(call: Call) -> bool:
    """A root that there is not."""
    if call.root is not None:
        call.root = len(call.sends) + 3
    return call.root is not None


def too_short(call: Call) -> bool:
    """Receivers whose blocks are shorter than what comes; only where messages go straight from rank to rank."""
    for rank, side in enumerate(call.receives):
        if side and rank != call.root:
            side.counts = [count // 2 for count in side.counts]
    return call.name == "scatterv"


WRONGS = [negative_counts, null_types, root_out_of_range, too_short]


class Errors:
    """Wrong arguments. Says which errors ranks get, and makes a good call after each."""

    def __init__(self, draw: random.Random) -> None:
        self.good = WORLD.Dup()
        self.plain, self.ring = WORLD.Dup(), WORLD.Create_cart([WORLD.size], [True])
        self.near = Neighbours.of(self.ring)

    def drawn(self, name: str, immediate: bool) -> Call:
        """A good call, not in place, with data in it."""
        draw = random.Random(name)
        while True:
            if name in OF_NEIGHBOURS:
                call = neighbour_call(draw, self.near, name)
            else:
                call = vector_call(draw, WORLD.size, immediate, name)
            counts = [count for side in call.receives if side for count in side.counts]
            if call.name == name and not call.in_place and min(counts) > 1 and max(counts) < 100:
                return call

    def __call__(self, draw: random.Random) -> None:
        for wrong in WRONGS:
            for name in SIDES:
                comm = self.ring if name in OF_NEIGHBOURS else self.plain
                for immediate in (False, True):
                    call = self.drawn(name, immediate)
                    if not wrong(call):
                        continue
                    of_all = self.good.allgather(error_class(call, comm, immediate))
                    if WORLD.rank == 0:
                        print(f"{wrong.__name__}, {'I' if immediate else ''}{name}: {of_all}", flush=True)
                    after = Running(self.drawn(name, immediate), comm, immediate, False)
                    one_by_one(after.requests)
                    if found := after.wrong():
                        fail(f"{name} after {wrong.__name__}: {found}")


def error_class(call: Call, comm: MPI.Intracomm, immediate: bool) -> int:
    """The class of the error that a call ends with."""
    try:
        one_by_one(Running(call, comm, immediate, False).requests)
    except MPI.Exception as error:
        return error.Get_error_class()
    return MPI.SUCCESS


KINDS = {
    "vectors": Vectors,
    "topologies": Topologies,
    "mixes": Mixes,
    "lifetimes": Lifetimes,
    "threads": Threads,
    "errors": Errors,
}


def main() -> None:
    """Runs all cases, a kind after another."""
    for argument in sys.argv[2:]:
        name, number = argument.split("=")
        draw = random.Random(f"{sys.argv[1]} {name}")
        cases = KINDS[name](draw)
        for case in range(int(number)):
            try:
                cases(fork(draw))
            except Exception:
                fail(f"{name}, case {case}: {traceback.format_exc()}")
        WORLD.Barrier()
        if WORLD.rank == 0:
            print(f"{name}: {number} cases", flush=True)


main()
