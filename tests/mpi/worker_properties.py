"""Collective calls, each compared with the host's own result.

Arguments: seed and number of random cases, or a JSON file with a list of cases.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import numpy as np
from calls import COMPOSED, REDUCTIONS, SHAPES, SHIFTS, TYPES, Buffer, Call, hint, served
from mpi4py import MPI
from operations import ALGORITHMS, OPERATIONS  # ranks run this file as a script: its directory is searched

WORLD = MPI.COMM_WORLD
COUNTS = [0, 1, 2, 3, 6, 7, 48, 100, 511, 512, 513, 1000, 1024, 4096, 4097, 8192, 8193, 20000, 65537, 140000]


def communicators() -> list[MPI.Intracomm]:
    """Communicators of many kinds, all containing this rank."""
    size, rank = WORLD.size, WORLD.rank
    group = WORLD.group.Incl(list(reversed(range(size))))
    kinds = [WORLD, WORLD.Dup(), WORLD.Split(rank % 2, rank), WORLD.Split(rank // 3, -rank)]
    kinds.append(WORLD.Create_group(group))
    kinds.append(WORLD.Create_cart([size], [True], reorder=True))
    kinds.append(WORLD.Split_type(MPI.COMM_TYPE_SHARED))
    kinds.append(MPI.COMM_SELF)
    return kinds


OPERATORS = [MPI.SUM, MPI.SUM, MPI.MIN, MPI.MAX, MPI.PROD, MPI.LXOR, MPI.BOR, COMPOSED]


def random_case(draw: random.Random) -> dict:
    """What all ranks agree on; numbers are taken modulo what there is."""
    name = draw.choice(OPERATIONS)
    limit = 20 if draw.random() < 0.15 else 15
    return {
        "op": name,
        "comm": draw.randrange(64),
        "dtype": draw.choice(TYPES),
        "count": COUNTS[draw.randrange(limit)],
        "root": draw.randrange(64),
        "in_place": draw.random() < 0.3,
        "algorithm": draw.choice([None, *ALGORITHMS.get(name, [])]),
        "operator": draw.randrange(64),
    }


def run_case(case: dict, own: random.Random, comms: list[MPI.Intracomm], seed: int) -> None:
    """One call by host and Nearfield. `own` differs between ranks: layouts, alignments, kinds of memory."""
    name, dtype, count, in_place = case["op"], case["dtype"], case["count"], case["in_place"]
    forced = case["algorithm"] if case["algorithm"] in ALGORITHMS.get(name, []) else None
    comm = comms[case["comm"] % len(comms)]
    p, me = comm.size, comm.rank
    if count * p > 300000:
        count //= p
    root = case["root"] % p
    reduction = name in REDUCTIONS
    operation = OPERATORS[case["operator"] % len(OPERATORS)]
    if reduction:
        if dtype[0] == "c" and operation not in (MPI.SUM, MPI.PROD):
            operation = MPI.SUM
        if dtype[0] == "f" and operation in (MPI.LXOR, MPI.BOR):
            operation = MPI.MAX
        if operation == COMPOSED:
            dtype = "u4"
    # The layout is every rank's own business, except in reductions.
    shape = "plain" if reduction else own.choice(SHAPES)
    if name in ("allgather", "alltoall", "gather", "scatter") and count == 0:
        shape = "plain"
    shift = own.choice(SHIFTS)
    allocated = own.random() < 0.2
    one = Call(name, comm, dtype, count, root, operation, in_place)
    send = Buffer(dtype, one.sends, shape, shift, allocated)
    recv = Buffer(dtype, one.receives, shape, shift, allocated)
    what = f"{name} p={p} rank={me} {dtype} count={count} root={root} {operation.handle if reduction else ''} in_place={in_place} algorithm={forced} {shape} shift={shift}"

    def call() -> np.ndarray:
        return one.make(one.contribution(me, seed), send, recv)

    hint(comm, nearfield="off")
    expected = call()
    hint(comm, nearfield="on", nearfield_algorithm=f"{name}:{forced}" if forced else " ")
    got = call()
    by = served()
    if p == 1:
        assert by == "alone", f"{what}: {by}"
    elif count > 0 or name == "barrier":
        # Everybody's types are what they like; operators of the user's are combined by the host.
        assert by != "host" and (by == "combined") == (reduction and operation == COMPOSED), f"{what}: {by}"
    assert send.intact(), f"{what}: wrote outside the send buffer"
    assert recv.intact(), f"{what}: wrote outside the receive buffer"
    floating = dtype[0] in "fc" and reduction
    if floating:
        np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-3, err_msg=what)
        again = call()
        if operation in (MPI.SUM, MPI.MIN, MPI.MAX):
            exact = one.gives([one.contribution(r, seed) for r in range(p)])
            exact = got if exact is None else exact
            assert got.tobytes() == exact.tobytes(), f"{what}: not the left fold in rank order"
            assert again.tobytes() == got.tobytes(), f"{what}: differs from call to call"
    else:
        where = np.flatnonzero(got != expected)[:5]
        assert got.tobytes() == expected.tobytes(), (
            f"{what}: differs at {where}: {got[where]} {expected[where]}"
        )
    hint(comm, nearfield_algorithm=" ")
    send.free()
    recv.free()


def main() -> None:
    """Runs the cases; the first failure ends the job."""
    seed = int(sys.argv[1]) if len(sys.argv) > 2 else 0
    draw, own = random.Random(seed), random.Random(seed * 100 + WORLD.rank)
    if len(sys.argv) > 2:
        program = [random_case(draw) for _ in range(int(sys.argv[2]))]
    else:
        program = json.loads(Path(sys.argv[1]).read_text())
    cases = len(program)
    comms = communicators()
    for number, case in enumerate(program):
        try:
            run_case(case, own, comms, seed * 10000 + number)
        except AssertionError as error:
            print(f"FAILED case {number}: {error}", flush=True)
            WORLD.Abort(3)
    WORLD.Barrier()
    if WORLD.rank == 0:
        print(f"{cases} cases")


main()
