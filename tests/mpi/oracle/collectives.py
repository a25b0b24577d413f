"""Cases of collectives: one at a time, many outstanding, on communicators that are freed, in threads, wrong ones."""

from __future__ import annotations

import functools
import os
import random
import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from mpi4py import MPI

from tests.mpi.operations import ALGORITHMS
from tests.mpi.oracle.calls import OF_NEIGHBOURS, V_FORMS, Call, given
from tests.mpi.oracle.communicators import (
    WORLD,
    On,
    across,
    fork,
    hint,
    of_every_kind,
    topology,
    works_by_host,
)
from tests.mpi.oracle.groups import forget_sessions
from tests.mpi.oracle.running import LOADED, Running, served

every_kind = functools.cache(of_every_kind)


def check(one: Running, what: str, exact: bool = True) -> None:
    """Raises where the model says something else."""
    if wrong := one.wrong(exact):
        raise AssertionError(f"{one.call}, {one.form}, rank {one.rank}, {what}: {wrong}")


# ---------------------------------------------------------------- one at a time


def single(draw: random.Random, own: random.Random, on: On, host: float, name: str = "") -> None:
    """One call by Nearfield, and sometimes by the host, which shows that the model is right."""
    call, form, large = on.draw(draw, name)
    p, starts = on.members.size, draw.randrange(1, 4)
    rows = ALGORITHMS.get(call.name, []) if form == "blocking" and not on.comm.is_inter else []
    row, by_host = draw.choice([None, *rows]), draw.random() < host
    if row:
        hint(on.comm, nearfield_algorithm=f"{call.name}:{row}")
    one = Running(call, on.comm, on.me, form, large, own)
    by = served()
    for _ in range(starts if form == "persistent" else 1):
        if form == "persistent":
            one.start()
        own.choice(WAYS)(list(one.requests))
        check(one, f"large {large}, {row} forced, by {by}")
    one.free()
    if form == "blocking" and LOADED:
        # Operators of the user's are combined by the host; empty ones need nobody.
        users = bool(call.operator and call.operator.users)
        if p == 1:
            assert by == "alone", f"{call}: {by}"
        elif not call.empty:
            assert by != "host" and (not users or by == "combined" or on.comm.is_inter), f"{call}: {by}"
    if row:
        hint(on.comm, nearfield_algorithm=" ")
    if by_host and form != "persistent" and works_by_host(call, on, form):
        hint(on.comm, nearfield="off")
        one = Running(call, on.comm, on.me, form, False, own)
        one_by_one(one.requests)
        check(one, "by the host", exact=False)
        one.free()
        hint(on.comm, nearfield="on")
    call.free()


def singles(seed: int, count: int, first: int = 0, host: float = 0.1, names: list[str] | None = None) -> int:
    """Calls one after another, on communicators of every kind or between two groups; topologies come and go."""
    draw, own = random.Random(seed), random.Random(seed * 1000 + WORLD.rank)
    beds: list[On | None] = across(first) if first else every_kind()
    tops = [] if first else [topology(fork(draw)) for _ in range(4)]
    for number in range(count):
        at, case = draw.randrange(len(beds) + len(tops) * 2), fork(draw)
        if at >= len(beds) and draw.random() < 0.15:
            at = (at - len(beds)) % len(tops)
            if tops[at]:
                tops[at].free()
            tops[at] = topology(fork(draw))
            on = tops[at]
        else:
            on = beds[at] if at < len(beds) else tops[(at - len(beds)) % len(tops)]
        name = draw.choice(names) if names else ""
        if on:
            try:
                single(case, own, on, host, name)
            except Exception as error:
                raise AssertionError(f"call {number}") from error
    for on in [*tops, *(beds if first else [])]:
        if on:
            on.free()
    forget_sessions()
    return count


def by_the_host(seed: int, count: int, first: int = 0) -> int:
    """Calls in their blocking forms on the plain host, which show that the model is right of it."""
    draw, own = random.Random(seed), random.Random(seed * 1000 + WORLD.rank)
    beds = across(first) if first else every_kind()
    for _ in range(count):
        on, case = draw.choice(beds), fork(draw)
        call, *_ = on.draw(case, form="blocking")
        if works_by_host(call, on, "blocking"):
            check(Running(call, on.comm, on.me, "blocking", False, own), "by the host", exact=False)
    for on in beds if first else []:
        on.free()
    forget_sessions()
    return count


def rows(lengths: list[int]) -> list[str]:
    """Forces every row of every collective at several lengths, on memory that peers reach; those that ran."""
    on, ran = On(WORLD.Dup()), []
    for op, names in ALGORITHMS.items():
        for row in names:
            hint(on.comm, nearfield_algorithm=f"{op}:{row}")
            for count in lengths:
                case = {
                    "op": op,
                    "dtype": "f8",
                    "count": count,
                    "root": on.members.size - 1,
                    "in_place": False,
                }
                call = given(case | {"operator": "sum", "seed": count, "shapes": False}, on.members)
                one = Running(call, on.comm, on.me, "blocking", False, random.Random(0), "MPI")
                by = served()
                check(one, f"{row} forced, by {by}")
                one.free()
                assert by != "host", f"{op} of {count} went to the host"
                if by == row:
                    ran.append(f"{op}:{row}")
    on.free()
    return sorted(set(ran))


def program(cases: list[dict]) -> int:
    """Calls that are given; `comm` and `row` are taken modulo what there is."""
    for number, case in enumerate(cases):
        on, own = every_kind()[case["comm"] % len(every_kind())], random.Random(number * 1000 + WORLD.rank)
        call = given(case, on.members)
        row = case["row"] if case["row"] in ALGORITHMS[case["op"]] else None
        hint(on.comm, nearfield_algorithm=f"{case['op']}:{row}" if row else " ")
        one = Running(call, on.comm, on.me, "blocking", False, own)
        check(one, f"{row} forced, by {served()}")
        one.free()
        hint(on.comm, nearfield_algorithm=" ")
    return len(cases)


# ---------------------------------------------------------------- many outstanding


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
    while True:
        at, done = MPI.Request.Testany(requests)
        if done and at == MPI.UNDEFINED:
            return
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
        if near := topology(fork(draw), new.comm):
            single(fork(draw), own, near, 0.1)
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


# ---------------------------------------------------------------- wrong arguments


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


def errors() -> list[str]:
    """The classes of errors that ranks get of wrong arguments; a good call is made after each."""
    plain, ring, own, told = (
        On(WORLD.Dup()),
        On(WORLD.Create_cart([WORLD.size], [True])),
        random.Random(0),
        [],
    )

    def call(name: str, form: str) -> tuple[On, Call]:
        """A good one, not in place, with data in it."""
        on, draw = ring if name in OF_NEIGHBOURS else plain, random.Random(name)
        while True:
            made, *_ = on.draw(draw, name, form)
            counts = [count for side in made.receives if side for count in side.counts]
            if not made.in_place and min(counts) > 1 and max(counts) < 100 and works_by_host(made, on, form):
                return on, made

    for wrong in (negative_counts, null_types, root_out_of_range, too_short):
        for name in V_FORMS + OF_NEIGHBOURS:
            for form in ("blocking", "immediate"):
                on, one = call(name, form)
                good = Running(call(name, form)[1], on.comm, on.me, form, False, own)
                one_by_one(good.requests)
                if not wrong(one):
                    continue
                code = MPI.SUCCESS
                try:
                    one_by_one(Running(one, on.comm, on.me, form, False, own).requests)
                except MPI.Exception as error:
                    code = error.Get_error_class()
                told.append(f"{wrong.__name__}, {form} {name}: {WORLD.allgather(code)}")
                after = Running(call(name, form)[1], on.comm, on.me, form, False, own)
                one_by_one(after.requests)
                check(after, f"after {wrong.__name__}")
    for on in (plain, ring):
        on.free()
    return told
