"""Cases of collectives one at a time: drawn, forced, given, by the plain host, and wrong ones."""

from __future__ import annotations

import functools
import random
from dataclasses import replace

from mpi4py import MPI

from tests.mpi.operations import ALGORITHMS
from tests.mpi.oracle.calls import OF_NEIGHBOURS, ROOTED, V_FORMS, Call, given, moving
from tests.mpi.oracle.communicators import (
    WORLD,
    On,
    across,
    fork,
    hint,
    of_every_kind,
    right_of_host,
    topology,
    works_by_host,
)
from tests.mpi.oracle.completing import WAYS, one_by_one
from tests.mpi.oracle.groups import forget_sessions
from tests.mpi.oracle.layouts import family
from tests.mpi.oracle.running import BY_HOST, LOADED, Running, served

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
    one_of_host = p == 1 and call.name not in (*V_FORMS, *OF_NEIGHBOURS)  # messages carry those
    if one_of_host and not right_of_host(call, on, form):
        return call.free()
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
            assert by == ("host" if one_of_host else "messages"), f"{call}: {by}"
        elif not call.empty and on.grown:
            assert by != "host" and (not users or by == "combined" or on.comm.is_inter), f"{call}: {by}"
    if row:
        hint(on.comm, nearfield_algorithm=" ")
    if by_host and p > 1 and form != "persistent" and works_by_host(call, on, form):
        hint(on.comm, nearfield="off")
        BY_HOST[call.name] += 1
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
    tops = [] if first else [topology(fork(draw), grown=True) for _ in range(4)]
    for number in range(count):
        at, case = draw.randrange(len(beds) + len(tops) * 2), fork(draw)
        if at >= len(beds) and draw.random() < 0.15:
            at = (at - len(beds)) % len(tops)
            if tops[at]:
                tops[at].free()
            tops[at] = topology(fork(draw), grown=True)
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

    def call(name: str) -> tuple[On, Call]:
        """A good one, not in place, with data in it."""
        on, draw = ring if name in OF_NEIGHBOURS else plain, random.Random(name)
        among = family("f8")[: 1 if name == "allgatherv" else 2]  # of one type where hosts need that
        root = draw.randrange(WORLD.size) if name in ROOTED else None
        members = on.near or on.members
        return on, moving(draw, name, members, among, lambda: draw.randrange(2, 100), root, False, 1)

    for wrong in (negative_counts, null_types, root_out_of_range, too_short):
        for name in V_FORMS + OF_NEIGHBOURS:
            for form in ("blocking", "immediate"):
                on, one = call(name)
                # Plain MPICH crashes where the first call of a communicator is wrong.
                good = Running(call(name)[1], on.comm, on.me, form, False, own)
                one_by_one(good.requests)
                if not wrong(one):
                    continue
                code = MPI.SUCCESS
                try:
                    one_by_one(Running(one, on.comm, on.me, form, False, own).requests)
                except MPI.Exception as error:
                    code = error.Get_error_class()
                told.append(f"{wrong.__name__}, {form} {name}: {WORLD.allgather(code)}")
                after = Running(call(name)[1], on.comm, on.me, form, False, own)
                one_by_one(after.requests)
                check(after, f"after {wrong.__name__}")
    for on in (plain, ring):
        on.free()
    return told
