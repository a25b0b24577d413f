"""Cases of communicators that span nodes: whom calls are served by depends on who lives where.

A given call has op, comm (a name below), dtype, count, root, in_place, operator, seed, row (forced, or null), times (that a
reduction of floating-point numbers is made again, for the same bits), rows (which have to give these bits too), fold (which
says that they are those of the left fold in rank order) and host_errs (what the host serves is not looked at).
"""

from __future__ import annotations

import functools
import hashlib
import json
import random
from collections import Counter

from mpi4py import MPI

from tests.mpi.oracle.calls import REDUCTIONS, given
from tests.mpi.oracle.communicators import WORLD, On, fork, hint
from tests.mpi.oracle.running import VENDOR, Running, served


@functools.cache
def communicators() -> dict[str, On | None]:
    """By name; nothing at ranks that are no members."""
    p, me = WORLD.size, WORLD.rank
    draw = random.Random(p)
    colours, keys = [draw.randrange(2) for _ in range(p)], draw.sample(range(p), p)
    made = {
        "world": WORLD,
        "dup": WORLD.Dup(),
        "reproducible": WORLD.Dup(),
        "reversed": WORLD.Split(0, -me),
        "shuffled": WORLD.Split(0, keys[me]),
        "split": WORLD.Split(colours[me], keys[me]),
        "odd": WORLD.Split(me % 2, me),
        "but one": WORLD.Split(0 if me or p == 1 else MPI.UNDEFINED, me),
        "near": WORLD.Split_type(MPI.COMM_TYPE_SHARED),
    }
    hint(made["reproducible"], nearfield_reproducible="on")
    return {name: On(comm) if comm != MPI.COMM_NULL else None for name, comm in made.items()}


@functools.cache
def node_of() -> list[str]:
    """By rank of the world."""
    return WORLD.allgather(MPI.Get_processor_name())


def nodes_of(comm: MPI.Intracomm) -> int:
    """How many nodes the members live on."""
    members = MPI.Group.Translate_ranks(comm.group, list(range(comm.size)), WORLD.group)
    return len({node_of()[rank] for rank in members})


def run_case(case: dict, tally: Counter) -> str:
    """One call, and the same again where bits are compared; a digest of what it gave this rank."""
    fresh = case["comm"] == "fresh"
    on = On(WORLD.Dup()) if fresh else communicators()[case["comm"]]
    if not on:
        return ""
    op, own = case["op"], random.Random(case["seed"] * 100 + WORLD.rank)  # memory is each rank's own business
    call = given(case, on.members)

    def result(row: str | None) -> bytes:
        if row or case["row"]:
            hint(on.comm, nearfield_algorithm=f"{op}:{row}" if row else " ")
        one = Running(call, on.comm, on.me, "blocking", False, own)
        tally[op, row or "", served(), nodes_of(on.comm) > 1] += 1
        if not (case["host_errs"] and served() == "host") and (wrong := one.wrong(exact=case["fold"])):
            raise AssertionError(f"{wrong}{' (the left fold)' if case['fold'] else ''}, by {served()}")
        made = one.result()
        one.free()
        return made

    got = result(case["row"])
    if op in REDUCTIONS and call.operator.rounds:
        for time in range(case["times"]):
            assert result(case["row"]) == got, f"other bits in call {time + 2}"
        for row in case["rows"]:
            assert result(row) == got, f"other bits by {row}"
    if case["row"]:
        hint(on.comm, nearfield_algorithm=" ")
    if fresh:
        on.free()
    return hashlib.sha256(got).hexdigest()


def calls(cases: list[dict]) -> dict[str, list]:
    """`served`: calls by [collective, forced row, row that served, whether its communicator spans nodes, how many], and
    `digests`, of what each call gave this rank."""
    tally: Counter = Counter()
    digests = []
    node_of()  # which all ranks make together; of a given call some are no members
    for case in cases:
        try:
            digests.append(run_case(case, tally))
        except Exception as error:
            error.add_note(json.dumps(case))
            raise
    return {"served": [[*key, n] for key, n in tally.items()], "digests": digests}


def exchanges(seed: int, count: int) -> int:
    """Alltoallv and Alltoallw: near parts are messages, the others the host's. All is the host's where each rank has a node
    of its own, and on several nodes what is in place."""
    draw = random.Random(seed)
    beds = [On(WORLD.Dup()), On(WORLD.Split(WORLD.rank % 2, -WORLD.rank))]
    for _ in range(count):
        on, case, name = draw.choice(beds), fork(draw), draw.choice(["alltoallv", "alltoallw"])
        p, nodes = on.members.size, nodes_of(on.comm)
        if p == 1 and VENDOR == "Open MPI":  # whose Alltoallw of one rank writes where it should not
            name = "alltoallv"
        call, *_ = on.draw(case, name, "blocking")
        one = Running(call, on.comm, on.me, "blocking", False, random.Random(call.seed + WORLD.rank))
        by, ours = served(), nodes == 1 or (nodes < p and not call.in_place)
        assert not (wrong := one.wrong()), f"{call}: {wrong}"
        assert by == ("messages" if ours and p > 1 else "host"), f"{call}: {by}"
        one.free()
        call.free()
    for on in beds:
        on.free()
    return count
