"""Communicators between two groups of ranks, and communicators that have no parent which all of their ranks know."""

from __future__ import annotations

import random

from mpi4py import MPI

WORLD = MPI.COMM_WORLD


def halves(first: int) -> tuple[MPI.Intracomm, bool, int]:
    """The group of this rank, whether it is the first, and the leader of the other. Groups interleave in the world."""
    order = random.Random(first).sample(range(WORLD.size), WORLD.size)
    groups = [sorted(order[:first], reverse=True), order[first:]]
    mine = int(WORLD.rank in groups[1])
    local = WORLD.Split(mine, groups[mine].index(WORLD.rank))
    return local, mine == 0, groups[1 - mine][0]


def is_first(first: int) -> bool:
    """Whether this rank is of the first group."""
    local, mine, _ = halves(first)
    local.Free()
    return mine


def connect(first: int, tag: int = 3) -> MPI.Intercomm:
    """Two groups of the world."""
    local, _, there = halves(first)
    inter = local.Create_intercomm(0, WORLD, there, tag)
    local.Free()
    return inter


def idup(comm: MPI.Comm) -> MPI.Comm:
    """By a request."""
    made, request = comm.Idup()
    request.Wait()
    return made


def sessions() -> bool:
    """Whether the host can make communicators from groups."""
    try:
        session = MPI.Session.Init()
        session.Finalize()
    except (NotImplementedError, MPI.Exception):
        return False
    return True


def from_groups(first: int) -> tuple[MPI.Intercomm, MPI.Intracomm]:
    """An intercommunicator and an intracommunicator without parents."""
    order = random.Random(first).sample(range(WORLD.size), WORLD.size)
    session = MPI.Session.Init()
    everybody = session.Create_group("mpi://WORLD")
    groups = [everybody.Incl(order[:first]), everybody.Incl(order[first:])]
    mine = int(WORLD.rank in order[first:])
    inter = MPI.Intercomm.Create_from_groups(groups[mine], 0, groups[1 - mine], 0, "nearfield.test")
    intra = MPI.Intracomm.Create_from_group(everybody, "nearfield.test")
    for group in (*groups, everybody):
        group.Free()
    KEPT.append(session)
    return inter, intra


KEPT: list[MPI.Session] = []


def intercommunicators(first: int, with_sessions: bool = True) -> dict[str, MPI.Intercomm]:
    """Of every constructor."""
    one = connect(first)
    made = {"create": one, "again": connect(first), "dup": one.Dup(), "idup": idup(one)}
    made["dup of dup"] = made["dup"].Dup()
    made["with info"] = one.Dup_with_info(MPI.INFO_NULL)
    made["split"] = one.Split(0, -one.rank)
    local = one.Get_group()
    made["comm_create"] = one.Create(local)
    local.Free()
    if with_sessions and sessions():
        made["from groups"], intra = from_groups(first)
        intra.Free()
    return made


def intracommunicators(first: int, with_sessions: bool = True) -> dict[str, MPI.Intracomm]:
    """Those that are made of intercommunicators and of groups, and children of theirs; and the world."""
    first_group, one = is_first(first), connect(first)
    made = {"world": WORLD, "merge": one.Merge(first_group), "merge again": one.Merge(not first_group)}
    duplicate = one.Dup()
    made["merge of dup"] = duplicate.Merge()
    made["dup of merge"] = made["merge"].Dup()
    made["idup of merge"] = idup(made["merge"])
    made["idup of world"] = idup(WORLD)
    made["split of merge"] = made["merge"].Split(made["merge"].rank % 2)
    made["shared"] = made["merge"].Split_type(MPI.COMM_TYPE_SHARED)
    group = made["merge"].Get_group()
    made["create_group"] = made["merge"].Create_group(group, 5)
    group.Free()
    for kind in ("HW_UNGUIDED", "RESOURCE_GUIDED", "HW_GUIDED"):
        try:
            info = (
                MPI.Info.Create({"mpi_hw_resource_type": "mpi_shared_memory"})
                if "U" in kind[3:5]
                else MPI.INFO_NULL
            )
            split = WORLD.Split_type(getattr(MPI, f"COMM_TYPE_{kind}"), 0, info)
        except (AttributeError, NotImplementedError, MPI.Exception):
            continue
        if split != MPI.COMM_NULL:
            made[kind] = split
    if with_sessions and sessions():
        inter, made["from group"] = from_groups(first)
        made["dup of from group"] = made["from group"].Dup()
        made["merge of from groups"] = inter.Merge(first_group)
        inter.Free()
    duplicate.Free()
    one.Free()
    return made


def forget_sessions() -> None:
    """Ends those that communicators were made from."""
    while KEPT:
        KEPT.pop().Finalize()


def free(comms: dict[str, MPI.Comm]) -> None:
    """All but the world."""
    for name, comm in comms.items():
        if name != "world":
            comm.Free()
    forget_sessions()
