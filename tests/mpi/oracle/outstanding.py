"""Cases of many collectives outstanding, on communicators that are freed meanwhile, and in threads."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import numpy as np
from mpi4py import MPI

from tests.mpi.oracle.collectives import check, single
from tests.mpi.oracle.communicators import WORLD, On, across, fork, topology
from tests.mpi.oracle.completing import WAYS, one_by_one
from tests.mpi.oracle.groups import forget_sessions
from tests.mpi.oracle.running import Running


class Message:
    """A message to another rank of a communicator and one from another; what is sent may be let go of at once."""

    left = 0

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

    def check(self) -> None:
        """As of a collective."""
        assert np.array_equal(self.result, self.expected), "a message among others differs"

    def free(self) -> None:
        """Nothing is kept."""


class Operation:
    """A call that is not waited for, of which `left` starts follow the first."""

    def __init__(self, one: Running, left: int) -> None:
        self.one, self.requests, self.left = one, one.requests, left
        if one.form == "persistent":
            one.start()

    def check(self) -> None:
        """Raises where the model says something else."""
        check(self.one, "among others")

    def again(self) -> None:
        """The next start."""
        self.left -= 1
        self.one.start()

    def free(self) -> None:
        """Of all that it had."""
        self.one.free()


def complete(own: random.Random, some: list[Operation | Message]) -> None:
    """Completes them in a random order, in a random way, and checks them."""
    requests = [request for one in some for request in one.requests]
    own.shuffle(requests)
    half = own.randrange(len(requests) + 1)
    for part in (requests[:half], requests[half:]):
        if part:
            own.choice(WAYS)(part)
    for one in some:
        one.check()


def mix(draw: random.Random, own: random.Random, beds: list[On | None]) -> None:
    """Dozens of operations outstanding on several communicators, among blocking ones and messages."""
    outstanding: list[Operation | Message] = []
    done: list[Operation | Message] = []
    for _ in range(draw.randrange(2, 6)):
        # The order on a communicator is everybody's, that between communicators each rank's own.
        queues: list[list[Callable[[], Operation | Message]]] = [[] for _ in beds]
        for _ in range(draw.randrange(1, 14)):
            number, case = draw.randrange(len(beds)), fork(draw)
            if on := beds[number]:
                queues[number].append(beginning(case, own, on))
        while left := [queue for queue in queues if queue]:
            outstanding.append(own.choice(left).pop(0)())
        for _ in range(draw.randrange(3)):
            on, case = draw.choice(beds), fork(draw)
            if on:
                call, _, large = on.draw(case, form="blocking")
                one = Running(call, on.comm, on.me, "blocking", large, own)
                check(one, "blocking among others")
                one.free()
                call.free()
        some = own.sample(outstanding, own.randrange(len(outstanding) + 1))
        complete(own, some)
        done += some
        outstanding = [one for one in outstanding if one not in some]
    complete(own, outstanding)
    done += outstanding
    while again := [one for one in done if one.left]:
        own.shuffle(again)
        for one in again:
            one.again()
        complete(own, again)
    for one in done:
        one.free()


def beginning(draw: random.Random, own: random.Random, on: On) -> Callable[[], Operation | Message]:
    """What starts a random operation that does not block, and a number of starts more."""
    if draw.random() < 0.3 and not on.comm.is_inter:
        step, length, tag = draw.randrange(on.comm.size), draw.choice([1, 100, 30000]), draw.randrange(100)
        return lambda: Message(on.comm, step, length, tag, own.random() < 0.3)
    while True:
        call, form, large = on.draw(draw, form=draw.choice(["immediate", "immediate", "persistent"]))
        if form != "blocking":
            break
    if form == "persistent":  # which may wait for all others now, in an order that is everybody's
        one, left = Running(call, on.comm, on.me, form, large, own), draw.randrange(4)
        return lambda: Operation(one, left)
    return lambda: Operation(Running(call, on.comm, on.me, form, large, own), 0)


def mixes(seed: int, count: int, first: int = 0) -> int:
    """On communicators of one group and their topologies, or between two groups."""
    draw, own = random.Random(seed), random.Random(seed * 1000 + WORLD.rank)
    made: list[On | None] = across(first) if first else []
    if not first:
        parent = WORLD.Dup()  # its first collective does not block
        made = [On(parent), On(parent.Dup()), topology(draw, parent), topology(draw, parent)]
        made += [On(WORLD.Split(0, -WORLD.rank)), On(WORLD.Split(WORLD.rank % 2, WORLD.rank))]
    for _ in range(count):
        mix(fork(draw), own, made)
    WORLD.Barrier()
    for on in made:
        if on:
            on.free()
    forget_sessions()
    return count


# ---------------------------------------------------------------- lifetimes and threads


def lifetimes(seed: int, count: int) -> int:
    """Communicators that are freed, also with calls under way and persistent ones that start only then, while others are
    made that may take their places."""
    draw, own = random.Random(seed), random.Random(seed * 1000 + WORLD.rank)
    kept = On(WORLD.Dup())
    for _ in range(count):
        parent = On(WORLD.Dup())
        colour = (WORLD.rank * draw.randrange(1, 4)) // 2 % 2
        child = On(parent.comm.Split(colour, draw.choice([-1, 1]) * WORLD.rank))
        begun = []
        for on, name in ((parent, "allgatherv"), (child, "gatherv"), (parent, "alltoallw"), (parent, "")):
            call, form, _ = on.draw(fork(draw), name, "immediate")
            begun.append(Running(call, on.comm, on.me, form, False, own))
        later = []
        for _ in range(2):
            call, form, _ = parent.draw(fork(draw), form="persistent")
            later.append(Running(call, parent.comm, parent.me, form, False, own))
        parent.free()
        new = On(WORLD.Dup())
        for on in (new, kept):
            single(fork(draw), own, on, 0.1)
        child.free()
        near, case = topology(fork(draw), new.comm), fork(draw)
        if near:
            single(case, own, near, 0.1)
            near.free()
        for one in later:
            if one.form == "persistent":
                one.start()
        for one in [*begun, *later][:: draw.choice([1, -1])]:
            one_by_one(one.requests)
            check(one, "on a communicator that was freed")
            one.free()
        new.free()
    kept.free()
    return count


def threads(seed: int, count: int) -> int:
    """Two threads, each with a communicator of its own."""
    assert MPI.Query_thread() == MPI.THREAD_MULTIPLE
    draw, troubles = random.Random(seed), []

    def calls(draw: random.Random, own: random.Random, on: On) -> None:
        try:
            for _ in range(5):
                single(draw, own, on, 0.1)
        except BaseException as error:
            troubles.append(error)

    both = [On(WORLD.Dup()), On(WORLD.Dup())]
    for number in range(count):
        running = [
            threading.Thread(target=calls, args=(fork(draw), random.Random(number * 1000 + WORLD.rank), on))
            for on in both
        ]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        if troubles:
            raise troubles[0]
    for on in both:
        on.free()
    return count
