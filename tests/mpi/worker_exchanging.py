"""Random Alltoallv and Alltoallw, each compared with the host's own result. Arguments: seed, number of cases.

Communicators whose ranks live on a node of their own each are the host's, and on several nodes calls in place.
"""

from __future__ import annotations

import ctypes
import random
import sys

import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
SERVED = ctypes.CDLL(None).nearfield_last_algorithm
SERVED.restype = ctypes.c_char_p


def hint(comm: MPI.Intracomm, on: bool) -> None:
    """Switches Nearfield on or off for a communicator, collectively."""
    info = MPI.Info.Create({"nearfield": "on" if on else "off"})
    comm.Set_info(info)
    info.Free()


def types() -> list[MPI.Datatype]:
    """Datatypes with 8, 8, 16, 24 and 12 bytes of data in an element, dense and with gaps."""
    gaps = MPI.DOUBLE.Create_resized(0, 24)
    vector = MPI.INT.Create_vector(2, 2, 5)
    indexed = MPI.DOUBLE.Create_indexed([1, 2], [3, 0])
    mixed = MPI.Datatype.Create_struct([1, 2], [0, 12], [MPI.INT, MPI.FLOAT])
    return [one.Commit() if one != MPI.DOUBLE else one for one in (MPI.DOUBLE, gaps, vector, indexed, mixed)]


def layout(draw: random.Random, counts: list[int], extents: list[int]) -> tuple[list[int], int]:
    """Places of all blocks in bytes, in any order and with gaps, and the length of it all."""
    places, at = [0] * len(counts), 64
    for r in draw.sample(range(len(counts)), len(counts)):
        places[r] = at
        at += counts[r] * extents[r] + draw.choice([0, 8, 24]) * 3
    return places, at + 256


def nodes_of(comm: MPI.Intracomm) -> int:
    """How many nodes its ranks live on."""
    return len(set(comm.allgather(MPI.Get_processor_name())))


def case(draw: random.Random, comm: MPI.Intracomm, kinds: list[MPI.Datatype], nodes: int) -> None:
    """One call, by Nearfield and by the host."""
    p, me = comm.size, comm.rank
    longest = draw.choice([3, 40, 700, 9000])
    counts = [[draw.choice([0, 1, draw.randrange(longest), longest]) for _ in range(p)] for _ in range(p)]
    # Alltoallw of one rank writes where it should not in plain Open MPI (5.0).
    each = draw.random() < 0.5 and (p > 1 or MPI.get_vendor()[0] != "Open MPI")
    in_place = draw.random() < 0.25
    kind = draw.randrange(len(kinds))
    of_pair = [[draw.randrange(len(kinds)) if each else kind for _ in range(p)] for _ in range(p)]
    if in_place:  # what two exchange is as long and of the same kind
        for i in range(p):
            for j in range(i):
                counts[i][j], of_pair[i][j] = counts[j][i], of_pair[j][i]
    sends, gets = counts[me], [counts[r][me] for r in range(p)]
    send_kinds, get_kinds = [kinds[k] for k in of_pair[me]], [kinds[of_pair[r][me]] for r in range(p)]
    if not each:  # displacements count extents
        extent = kinds[kind].extent
        steps = [draw.randrange(4) for _ in range(2 * p)]

        def packed(lengths: list[int], gaps: list[int]) -> list[int]:
            return [sum(lengths[:r]) + sum(gaps[:r]) for r in range(len(lengths))]

        send_at, get_at = packed(sends, steps[:p]), packed(gets, steps[p:])
        room = (sum(sends) + sum(gets) + sum(steps) + 2) * extent + 256
        send_room, get_room = room, room
    else:
        send_at, send_room = layout(draw, sends, [k.extent for k in send_kinds])
        get_at, get_room = layout(draw, gets, [k.extent for k in get_kinds])
    generator = np.random.default_rng(draw.randrange(1 << 30) + me)
    send = generator.integers(0, 255, send_room, dtype="u1")
    start = generator.integers(0, 255, get_room, dtype="u1")
    results = []
    for on in (True, False):
        hint(comm, on)
        result = start.copy()
        if each:
            source = MPI.IN_PLACE if in_place else [send, (sends, send_at), send_kinds]
            comm.Alltoallw(source, [result, (gets, get_at), get_kinds])
        else:
            source = MPI.IN_PLACE if in_place else [send, (sends, send_at), kinds[kind]]
            comm.Alltoallv(source, [result, (gets, get_at), kinds[kind]])
        carried = nodes == 1 or (nodes < comm.size and not in_place)
        ours = b"alone" if p == 1 else b"messages"
        assert SERVED() == (ours if on and (carried or p == 1) else b"host")
        results.append(result)
    if not np.array_equal(*results):
        where = np.flatnonzero(results[0] != results[1])
        print(
            f"rank {me} of {p}: {'w' if each else 'v'}, in place {in_place}: differs at {where[:5]}",
            flush=True,
        )
        comm.Abort(1)


def main() -> None:
    """Runs all cases on the world and on halves of it."""
    seed, cases = int(sys.argv[1]), int(sys.argv[2])
    draw = random.Random(seed)
    half = WORLD.Split(WORLD.rank % 2, -WORLD.rank)
    same = WORLD.Dup()
    kinds = types()
    half_nodes, same_nodes = nodes_of(half), nodes_of(same)
    for _ in range(cases):
        # All ranks draw the same, whichever communicator it is for.
        if draw.random() < 0.3:
            case(random.Random(draw.randrange(1 << 30) * 2 + WORLD.rank % 2), half, kinds, half_nodes)
        else:
            case(random.Random(draw.randrange(1 << 30)), same, kinds, same_nodes)
    WORLD.Barrier()
    if WORLD.rank == 0:
        print(f"{cases} cases", flush=True)


main()
