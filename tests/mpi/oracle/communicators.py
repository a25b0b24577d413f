"""Communicators that calls are made on: of every constructor, with topologies of several kinds, and between two groups."""

from __future__ import annotations

import random

import numpy as np
from mpi4py import MPI

from tests.mpi.oracle import groups
from tests.mpi.oracle.calls import MOVES, OF_NEIGHBOURS, REDUCTIONS, V_FORMS, Call, Members, drawn
from tests.mpi.oracle.running import FORMS, VENDOR, has

WORLD = MPI.COMM_WORLD


def hint(comm: MPI.Comm, **hints: str) -> None:
    """Sets hints on a communicator, collectively."""
    info = MPI.Info.Create(hints)
    try:
        comm.Set_info(info)
    finally:
        info.Free()


def neighbours(comm: MPI.Topocomm) -> Members:
    """Who is whose neighbour, in the order of the topology; edges as MPI 4.1 pairs them, and Nearfield under every host."""
    if comm.topology == MPI.CART:
        mine = [r for d in range(comm.Get_dim()) for r in comm.Shift(d, 1)]
        own = mine, mine
    elif comm.topology == MPI.GRAPH:
        own = comm.Get_neighbors(comm.rank), comm.Get_neighbors(comm.rank)
    else:
        own = comm.Get_dist_neighbors()[:2]
    of_all = comm.allgather([list(one) for one in own])
    sources, targets = [s for s, _ in of_all], [t for _, t in of_all]

    def paired(directed: bool) -> list[list[tuple[int, int, int]]]:
        """Of several edges between two ranks the n-th block meets the n-th, or, `directed`, what is sent towards one side
        of a grid comes from the other."""
        edges = []
        for me, whose in enumerate(sources):
            mine = []
            for block, source in enumerate(whose):
                if source != MPI.PROC_NULL:
                    there = [i for i, to in enumerate(targets[source]) if to == me]
                    mine.append(
                        (block, source, block ^ 1 if directed else there[whose[:block].count(source)])
                    )
            edges.append(mine)
        return edges

    grid = comm.topology == MPI.CART
    return Members(sources, targets, paired(grid), [comm.size], grid and paired(True) != paired(False))


class On:
    """A communicator, who its members are, and what may be called on it.

    `grown`: it gets its team now, so that the host serves none of its calls for its youth.
    """

    def __init__(self, comm: MPI.Comm, first: bool = True, origin: str = "", grown: bool = False) -> None:
        self.comm, self.origin, self.grown = comm, origin, grown
        if grown:
            hint(comm, nearfield="on")
        self.me = comm.rank + (0 if first else comm.remote_size)
        mine = [comm.size, comm.remote_size] if comm.is_inter else [comm.size]
        self.members = Members.of_groups(*(mine if first else mine[::-1]))
        self.near = neighbours(comm) if isinstance(comm, MPI.Topocomm) else None

    def draw(self, draw: random.Random, name: str = "", form: str = "") -> tuple[Call, str, bool]:
        """A call that it allows, its form, and whether by the function of large counts."""
        form = form or draw.choice([*FORMS, "blocking", "immediate"])
        near = self.near if not name and self.near and draw.random() < 0.8 else None
        if near or name in OF_NEIGHBOURS:
            name, near = name or draw.choice(OF_NEIGHBOURS), self.near
        elif not name:
            allowed = REDUCTIONS if draw.random() < 0.4 else MOVES
            name = draw.choice(
                [one for one in allowed if not self.comm.is_inter or one not in ("scan", "exscan")]
            )
        if self.comm.is_inter and name not in REDUCTIONS and form != "blocking":
            # Others are the host's. Plain MPICH 5.0.2 and Intel MPI 2021.19 lose MPI_Ibcast from any root but the first.
            form = "immediate" if name in ("barrier", *V_FORMS) else "blocking"
        if not has(name, form):
            form = "blocking"
        call = drawn(draw, name, near or self.members)
        return call, form, draw.random() < 0.4 and name != "barrier" and has(name, form, True)

    def free(self) -> None:
        """Frees the communicator."""
        if self.comm not in (WORLD, MPI.COMM_SELF):
            self.comm.Free()


def works_by_host(call: Call, on: On, form: str) -> bool:
    """Whether the plain host does a call right.

    Open MPI 5.0.11: Alltoallw of one rank writes where it should not; in place, Ialltoallv of four ranks and more moves
    wrong data and Ialltoallw never ends when a rank has nothing to send; it chooses the algorithm of Allgatherv by the size
    of the send type, each rank for itself, and hangs; in reductions it looks at the type of those who move nothing. MPICH
    5.0.2 and Intel MPI cut blocks of Allgatherv into parts of 32 KiB of the receive type's extents, which do not match:
    truncation, or wrong results of Iallgatherv. Intel MPI 2021.19 writes wrong data in Allgather of different types; its
    Ialltoallw in place ends with a truncation when the types of blocks differ. Grids with periodic dimensions of 1 and 2:
    MPICH 5.0.2 pairs blocks as Nearfield does, Open MPI 5.0.11 only in its blocking forms, Intel MPI 2021.19 never.
    Between two groups MPICH 5.0.2 hangs in MPI_Reduce_scatter on what was split, and is not asked about what only moves;
    its Ireduce_scatter in place aborts where the blocks of a rank before are shorter than its own ("memory ranges
    overlap"). Open MPI truncates blocks whose ends count them in different types.
    """
    name = call.name
    if name == "allgatherv":
        used = {id(side.kinds[0]) for side in call.sends + call.receives if side}
        return len(used) == 1 and not call.types
    if name == "allgather" and VENDOR == "Intel MPI":
        return len({id(kind) for side in call.sends + call.receives if side for kind in side.kinds}) == 1
    if name == "reduce_scatter" and call.in_place and form != "blocking" and VENDOR == "MPICH":
        return False
    if name in OF_NEIGHBOURS and on.near.ambiguous:
        return {"MPICH": True, "Open MPI": form == "blocking"}.get(VENDOR, False)
    if name == "alltoallw" and VENDOR == "Open MPI" and len(call.sends) == 1:
        return False
    if on.comm.is_inter and VENDOR != "Open MPI":
        return bool(call.operator) and on.origin != "split"
    if on.comm.is_inter and name in V_FORMS:
        return all(kind.units == 1 for side in call.sends + call.receives if side for kind in side.kinds)
    if on.comm.is_inter and call.operator:
        return (name, call.operand.name) != ("reduce", "pair")
    return not (
        name in ("alltoallv", "alltoallw") and call.in_place and form != "blocking" and VENDOR != "MPICH"
    )


def right_of_host(call: Call, on: On, form: str) -> bool:
    """Whether hosts do a call right, plain or while its team is deferred: in the forms that do not block MPICH 5.0.2 and
    Intel MPI 2021.19 take blocks of different types for truncated, and Open MPI 5.0.11 crashes with types that are freed
    before a persistent call starts. MPI_Testall of MPICH and Intel MPI fails on persistent calls of one rank."""
    if form == "persistent" and len(call.sends) == 1 and VENDOR != "Open MPI":
        return False
    sides = [side for side in call.sends + call.receives if side]
    plain = all(one.type.is_predefined for side in sides for one in side.kinds)
    return works_by_host(call, on, form) and (form == "blocking" or plain)


def of_every_kind() -> list[On]:
    """Communicators of one group, all containing this rank, with their teams."""
    size, rank = WORLD.size, WORLD.rank
    backwards = WORLD.group.Incl(list(reversed(range(size))))
    made = [WORLD, WORLD.Dup(), WORLD.Split(rank % 2, -rank), WORLD.Split(rank // 3, -rank), WORLD.Dup()]
    made += [WORLD.Create_group(backwards), WORLD.Create_cart([size], [True], reorder=True)]
    made += [WORLD.Split_type(MPI.COMM_TYPE_SHARED), MPI.COMM_SELF.Dup()]
    backwards.Free()
    return [On(comm, grown=True) for comm in made]


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


def topology(draw: random.Random, comm: MPI.Intracomm = WORLD, grown: bool = False) -> On | None:
    """A communicator with a random topology; nothing on ranks that are not in it."""
    made = draw.choice([grid, grid, graph, distributed, distributed])(draw, comm)
    return On(made, grown=grown) if made != MPI.COMM_NULL else None


def fork(draw: random.Random) -> random.Random:
    """Numbers of their own, so that ranks that draw fewer go on alike."""
    return random.Random(draw.randrange(1 << 30))


def across(first: int) -> list[On]:
    """Intercommunicators of every constructor between two groups of the world, of which one has `first` ranks."""
    comms = groups.intercommunicators(first)
    is_first = groups.is_first(first)
    return [On(comms[name], is_first, name) for name in sorted(comms)]
