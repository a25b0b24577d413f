"""Random programs of everything at once: calls of collectives in all forms and messages of all kinds, outstanding for many
steps; communicators that are made and freed meanwhile, those of deferred teams among them; windows; threads.

All ranks draw the same steps from the seed, each knows by the model what its memory has to hold afterwards (calls.py,
messages.py, talking.py, windows_plan.py), and nothing is compared with a host. A step is a function and a row of STEPS.
`python -m tests.mpi.fuzz` runs them, also on plain hosts, and again by the seed that a failure names.
"""

from __future__ import annotations

import functools
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from mpi4py import MPI

from tests.mpi.oracle import groups, messages, windows_running
from tests.mpi.oracle.calls import Call
from tests.mpi.oracle.collectives import check
from tests.mpi.oracle.communicators import WORLD, On, fork, right_of_host, topology
from tests.mpi.oracle.completing import WAYS, one_by_one
from tests.mpi.oracle.running import LOADED, VENDOR, Running
from tests.mpi.oracle.talking import Talk

# How many calls of a communicator may be the host's.
DEFERRED = int(os.environ.get("NEARFIELD_DEFER", "8"))
MOST_BEDS, MOST_WINDOWS = 10, 3


# ---------------------------------------------------------------- what may be outstanding


class Message:
    """A message to another rank of a communicator and one from another; what is sent may be let go of at once."""

    left = 0
    # Of sends that nobody completes: who gets them may be far behind, until all have ended.
    let_go: ClassVar[list[np.ndarray]] = []

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
            Message.let_go.append(self.sent)

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

    def __str__(self) -> str:
        return f"{self.one.call}, {self.one.form}"

    def check(self) -> None:
        """Raises where the model says something else."""
        check(self.one, "among others", LOADED)

    def again(self) -> None:
        """The next start."""
        self.left -= 1
        self.one.start()

    def free(self) -> None:
        """Of all that it had."""
        self.one.free()


# ---------------------------------------------------------------- a program


@dataclass(eq=False)
class Bed:
    """A communicator, if this rank is in it; `whole`, where all are. `calls` counts its collective calls."""

    on: On | None
    whole: bool = True
    calls: int = 0


class Program:
    """What a program has. `own` draws what is this rank's own business: the order of completions, memory, ways to wait."""

    def __init__(self, seed: int, first: int) -> None:
        self.draw, self.own = random.Random(seed), random.Random(seed * 1000 + WORLD.rank)
        self.first = first  # ranks of the first of two groups; without, a random one
        # Of messages and windows, whose tags nobody else has.
        self.told = messages.communicators()[1:] + [WORLD.Dup()]
        self.seed = seed
        self.beds = [Bed(On(WORLD.Dup())) for _ in range(2)]
        self.outstanding: list[Operation | Message] = []
        self.done: list[Operation | Message] = []
        self.windows: list[windows_running.Window] = []
        MPI.Attach_buffer(np.zeros(80 << 20, "u1"))

    @functools.cached_property
    def talk(self) -> Talk:
        """With partitioned messages, where plain MPICH 5.0.2 does not crash of them."""
        by_name = {str(at): comm for at, comm in enumerate(self.told)}
        return Talk(by_name, self.seed, partitioned=LOADED or VENDOR == "Open MPI")

    def drawn(self, bed: Bed, case: random.Random, form: str = "") -> tuple[Call, str, bool] | None:
        """A call on a communicator of this rank's, or nothing, where the one that was drawn is not right of the host, which
        serves it."""
        call, form, large = bed.on.draw(case, form=form)
        bed.calls += 1
        ours = LOADED and bed.calls > DEFERRED and len(call.sends) > 1
        if ours or right_of_host(call, bed.on, form):
            return call, form, large
        call.free()
        return None

    def complete(self, some: list[Operation | Message]) -> None:
        """Completes them in a random order, in a random way, and checks them."""
        requests = [request for one in some for request in one.requests]
        self.own.shuffle(requests)
        half = self.own.randrange(len(requests) + 1)
        try:
            for part in (requests[:half], requests[half:]):
                if part:
                    self.own.choice(WAYS)(part)
        except MPI.Exception as error:
            error.add_note("one of " + ", ".join(map(str, some)))
            raise
        for one in some:
            one.check()
        for one in some:
            if one in self.outstanding:
                self.outstanding.remove(one)
                self.done.append(one)

    def finish(self) -> None:
        """Completes all, and starts again what is to be: what persists everybody starts at the same time."""
        self.complete(list(self.outstanding))
        while again := [one for one in self.done if one.left]:
            for one in self.own.sample(again, len(again)):
                one.again()
            self.complete(again)
        for one in self.done:
            one.free()
        self.done = []

    def part(self, bed: Bed) -> None:
        """Frees a communicator."""
        self.beds.remove(bed)
        if bed.on:
            bed.on.free()

    def end(self) -> None:
        """Lets everything go."""
        self.finish()
        for window in self.windows:
            window.free()
        for bed in list(self.beds):
            self.part(bed)
        MPI.Detach_buffer()
        for comm in self.told:
            comm.Free()
        WORLD.Barrier()
        Message.let_go.clear()
        groups.forget_sessions()


# ---------------------------------------------------------------- collectives


def call(program: Program, case: random.Random) -> None:
    """One call, waited for."""
    bed = case.choice(program.beds)
    if not bed.on or not (drawn := program.drawn(bed, case)):
        return
    made, form, large = drawn
    one = Running(made, bed.on.comm, bed.on.me, form, large, program.own)
    for _ in range(case.randrange(1, 4) if form == "persistent" else 1):
        if form == "persistent":
            one.start()
        program.own.choice(WAYS)(list(one.requests))
        check(one, f"call {bed.calls} of its communicator", LOADED)
    one.free()
    made.free()


def beginning(program: Program, case: random.Random, bed: Bed) -> Callable[[], Operation | Message] | None:
    """What starts a random operation that does not block, and a number of starts more."""
    on = bed.on
    if case.random() < 0.3 and not on.comm.is_inter:
        step, length, tag = case.randrange(on.comm.size), case.choice([1, 100, 30000]), case.randrange(100)
        return lambda: Message(on.comm, step, length, tag, program.own.random() < 0.3)
    if not (drawn := program.drawn(bed, case, case.choice(["immediate", "immediate", "persistent"]))):
        return None
    made, form, large = drawn
    if form == "blocking":
        return None
    if form == "persistent":  # which may wait for all others now, in an order that is everybody's
        one, left = Running(made, on.comm, on.me, form, large, program.own), case.randrange(4)
        return lambda: Operation(one, left)
    return lambda: Operation(Running(made, on.comm, on.me, form, large, program.own), 0)


def many(program: Program, case: random.Random) -> None:
    """Operations on several communicators, some of which stay outstanding. The order on a communicator is everybody's, that
    between communicators each rank's own."""
    queues: list[list[Callable[[], Operation | Message]]] = [[] for _ in program.beds]
    for _ in range(case.randrange(1, 14)):
        number, one = case.randrange(len(program.beds)), fork(case)
        bed = program.beds[number]
        if bed.on and (begin := beginning(program, one, bed)):
            queues[number].append(begin)
    while left := [queue for queue in queues if queue]:
        program.outstanding.append(program.own.choice(left).pop(0)())
    program.complete(
        program.own.sample(program.outstanding, program.own.randrange(len(program.outstanding) + 1))
    )


def finish(program: Program, case: random.Random) -> None:
    """Nothing is outstanding any more."""
    program.finish()


# ---------------------------------------------------------------- communicators


def between_two_groups(program: Program, case: random.Random) -> Bed:
    """An intercommunicator, made in one of several ways."""
    first = program.first or case.randrange(1, WORLD.size)
    comm, kind = groups.connect(first, 3), case.choice(["create", "dup", "split"])
    if kind != "create":
        comm, old = comm.Dup() if kind == "dup" else comm.Split(0, -comm.rank), comm
        old.Free()
    return Bed(On(comm, groups.is_first(first), kind))


def child(program: Program, case: random.Random) -> Bed:
    """A communicator of one that all ranks are in."""
    parents = [bed for bed in program.beds if bed.whole and not bed.on.comm.is_inter]
    of = case.choice([WORLD, *[bed.on.comm for bed in parents]])
    p, me = of.size, of.rank
    how = case.choice(["dup", "idup", "split", "reversed", "group", "topology", "shared", "self"])
    if how == "topology":
        on = topology(case, of)
        return Bed(on, whole=False)
    if how == "split":
        colours = [case.choice([0, 1, MPI.UNDEFINED]) for _ in range(p)]
        comm = of.Split(colours[me], case.choice([-1, 1]) * me)
        return Bed(On(comm) if comm != MPI.COMM_NULL else None, whole=False)
    if how == "group":
        members = case.sample(range(p), case.randrange(1, p + 1))
        group = of.group.Incl(members)
        comm = of.Create_group(group, 7) if me in members else MPI.COMM_NULL
        group.Free()
        return Bed(On(comm) if comm != MPI.COMM_NULL else None, whole=False)
    if how == "self":
        return Bed(On(MPI.COMM_SELF.Dup()), whole=False)
    makers = {"dup": of.Dup, "idup": lambda: groups.idup(of), "reversed": lambda: of.Split(0, -me)}
    return Bed(On(makers.get(how, lambda: of.Split_type(MPI.COMM_TYPE_SHARED))()))


def make(program: Program, case: random.Random) -> None:
    """A new communicator; with two groups asked for they are most."""
    across = WORLD.size > 1 and case.random() < (0.8 if program.first else 0.1)
    program.beds.append((between_two_groups if across else child)(program, case))
    if len(program.beds) > MOST_BEDS:
        part(program, case)


def part(program: Program, case: random.Random) -> None:
    """A communicator is freed, maybe with operations on it under way and persistent ones that start only then.

    Plain Open MPI 5.0.11 crashes with collectives under way.
    """
    bed = case.choice(program.beds)
    if VENDOR == "Open MPI" and not (LOADED and bed.whole and bed.calls > DEFERRED and WORLD.size > 1):
        program.finish()
    if len(program.beds) > 1:
        program.part(bed)


# ---------------------------------------------------------------- messages


def round_of_messages(program: Program, case: random.Random) -> None:
    """In all modes, received in all ways, on several communicators at once (messages.py)."""
    comms, (plan,) = [WORLD, *program.told[:3]], messages.generate(case.randrange(1 << 30), 1)
    ranks = [MPI.Group.Translate_ranks(WORLD.group, None, comm.group) for comm in comms]
    messages.Round(case.randrange(1 << 20), plan, comms, [list(one) for one in ranks]).run()
    WORLD.Barrier()  # a receive from anybody takes no message of another step


def talk(program: Program, case: random.Random) -> None:
    """Persistent and partitioned ones, combined sends and receives, matched probes (talking.py)."""
    program.talk.round()


def neighbours(comm: MPI.Comm) -> tuple[int, int]:
    """In a ring."""
    return (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size


def truncated(program: Program, case: random.Random) -> None:
    """Messages that are longer than their receives: an error there, and nothing else of it anywhere."""
    comm, length = case.choice(program.told), case.choice([2, 100, 1030, 9000, 300000])
    to, source = neighbours(comm)
    form, mode = (
        case.choice(["recv", "wait", "test", "all", "matched"]),
        case.choice(["Isend", "Issend", "Ibsend"]),
    )
    anybody, before = case.random() < 0.4, case.random() < 0.5
    got, room = np.full(length, 7, "u1"), case.randrange(length)
    status = MPI.Status()
    sending = (
        None
        if before and form in ("wait", "test", "all")
        else getattr(comm, mode)(np.full(length, 3, "u1"), to, 55)
    )
    whom = MPI.ANY_SOURCE if anybody else source
    request = comm.Irecv([got, room, MPI.BYTE], whom, 55) if form in ("wait", "test", "all") else None
    sending = sending or getattr(comm, mode)(np.full(length, 3, "u1"), to, 55)
    try:
        if form == "recv":
            comm.Recv([got, room, MPI.BYTE], whom, 55, status)
        elif form == "matched":
            comm.Mprobe(whom, 55).Recv([got, room, MPI.BYTE], status)
        elif form == "wait":
            request.Wait(status)
        elif form == "all":
            MPI.Request.Waitall([request], [status])
        else:
            while not request.Test(status):
                pass
        code = MPI.SUCCESS
    except MPI.Exception as error:
        code = error.Get_error_class()
    if code == MPI.ERR_IN_STATUS:
        code = MPI.Get_error_class(status.error)
    assert code == MPI.ERR_TRUNCATE, f"{length} bytes into {room} by {form}, {mode}: class {code}"
    sending.Wait()
    # Plain Open MPI 5.0.11 does with what comes from another node.
    here = MPI.Get_processor_name()
    known = VENDOR == "Open MPI" and comm.sendrecv(here, to, source=source) != here
    assert known or (got[room:] == 7).all(), "wrote behind the receive"
    comm.Barrier()


def cancelled(program: Program, case: random.Random) -> None:
    """Receives are taken back, those that nobody meets and those that somebody may."""
    comm, anybody, late = case.choice(program.told), case.random() < 0.5, case.random() < 0.5
    to, source = neighbours(comm)
    status, got = MPI.Status(), np.zeros(500, "i4")
    request = comm.Irecv(got, MPI.ANY_SOURCE if anybody else source, 56)
    if late:
        comm.Barrier()
    sending = comm.Isend(np.full(500, comm.rank + 1, "i4"), to, 56)
    request.Cancel()
    request.Wait(status)
    if status.Is_cancelled():
        comm.Recv(got, source, 56)
    sending.Wait()
    assert (got == source + 1).all(), "a message whose receive was to be cancelled"
    comm.Barrier()


def ready(program: Program, case: random.Random) -> None:
    """Sends whose receives are there."""
    comm, length = case.choice(program.told), case.choice([0, 1, 200, 5000, 200000])
    mode = case.choice(["Rsend", "Irsend", "Rsend_init"])
    to, source = neighbours(comm)
    got, sent = np.zeros(length, "i4"), np.arange(length, dtype="i4") + comm.rank
    request = comm.Irecv(got, source, 57)
    comm.Barrier()
    sending = getattr(comm, mode)(sent, to, 57)
    if mode == "Rsend_init":
        sending.Start()
    one_by_one([request, *([sending] if sending else [])])
    if mode == "Rsend_init":
        sending.Free()
    assert np.array_equal(got, sent - comm.rank + source), "a message that was sent ready"


# ---------------------------------------------------------------- windows


def window(program: Program, case: random.Random) -> None:
    """A new one, of any kind; one that is old goes."""
    comm, kind = case.choice([*program.told, MPI.COMM_SELF]), case.choice(windows_running.KINDS)
    program.windows.append(windows_running.Window(fork(case), comm, kind))
    if len(program.windows) > MOST_WINDOWS:
        program.windows.pop(0).free()


def epochs(program: Program, case: random.Random) -> None:
    """A round on a window: fences, post and start, locks (windows_plan.py)."""
    if program.windows:
        windows_running.Round(case.choice(program.windows), fork(case), case.randrange(1 << 30)).run()


# ---------------------------------------------------------------- threads


def threads(program: Program, case: random.Random) -> None:
    """Two with collectives on communicators of their own, two with messages on one that they share."""
    if MPI.Query_thread() != MPI.THREAD_MULTIPLE:
        return
    troubles: list[BaseException] = []
    beds, shared = [Bed(On(WORLD.Dup())) for _ in range(2)], program.told[0]

    def guarded(body: Callable[..., None], *arguments: object) -> threading.Thread:
        def run() -> None:
            try:
                body(*arguments)
            except BaseException as error:
                troubles.append(error)

        return threading.Thread(target=run)

    def calls(case: random.Random, own: random.Random, bed: Bed) -> None:
        for _ in range(3):
            drawn = [
                one for _ in range(case.randrange(1, 5)) if (one := program.drawn(bed, case, "immediate"))
            ]
            begun = [Running(made, bed.on.comm, bed.on.me, form, large, own) for made, form, large in drawn]
            own.choice(WAYS)(own.sample(requests := sum((one.requests for one in begun), []), len(requests)))
            for one in begun:
                check(one, "in a thread", LOADED)
                one.free()

    def talks(case: random.Random, own: random.Random, tag: int) -> None:
        to, source = neighbours(shared)
        for _ in range(6):
            length, anybody, matched = (
                case.choice([1, 300, 3000, 100000]),
                case.random() < 0.5,
                own.random() < 0.5,
            )
            sending = shared.Isend(np.full(length, tag, "i4"), to, tag)
            got, whom = np.zeros(length, "i4"), MPI.ANY_SOURCE if anybody else source
            if matched:
                shared.Mprobe(whom, tag).Recv(got)
            else:
                shared.Recv(got, whom, tag)
            sending.Wait()
            assert (got == tag).all(), "a message among threads"

    own = [random.Random(program.own.randrange(1 << 30)) for _ in range(4)]
    running = [guarded(calls, fork(case), own[at], bed) for at, bed in enumerate(beds)]
    running += [guarded(talks, fork(case), own[2 + at], 60 + at) for at in range(2)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if troubles:
        raise troubles[0]
    for bed in beds:
        bed.on.free()
    shared.Barrier()


# ---------------------------------------------------------------- the walk

STEPS: dict[str, tuple[int, Callable[[Program, random.Random], None]]] = {
    "call": (30, call),
    "many": (16, many),
    "finish": (3, finish),
    "make": (8, make),
    "part": (3, part),
    "round": (8, round_of_messages),
    "talk": (2, talk),
    "truncated": (4, truncated),
    "cancelled": (3, cancelled),
    "ready": (2, ready),
    "window": (2, window),
    "epochs": (6, epochs),
    "threads": (2, threads),
}

# epochs: seed 11 at 3 ranks, a chain of fetches that no order explains; whether ours or the host's is not known.
# threads: Intel MPI 2021.19 runs operators under its lock, and mpi4py makes calls that need it under Python's. So a thread in
# an operator of Python's and one in Alloc_mem or Create_vector wait for each other, without Nearfield as well.
NOT_UNDER_INTEL = {"epochs", "threads"}


def walk(
    seed: int, steps: int, seconds: float = 60, first: int = 0, names: list[str] | None = None
) -> dict[str, int]:
    """A program of so many steps, or of as many as there is time for; how often each was made."""
    program, made, end = Program(seed, first), Counter(), time.monotonic() + seconds
    names = names or [name for name in STEPS if not (VENDOR == "Intel MPI" and name in NOT_UNDER_INTEL)]
    weights = [STEPS[name][0] for name in names]
    for number in range(steps):
        (name,) = program.draw.choices(names, weights)
        case = fork(program.draw)
        os.write(2, f"rank {WORLD.rank} seed {seed} step {number} {name}\n".encode())
        try:
            STEPS[name][1](program, case)
        except Exception as error:
            raise AssertionError(f"seed {seed}, step {number}: {name}") from error
        made[name] += 1
        if number % 8 == 7 and WORLD.bcast(time.monotonic() > end):
            break
    program.end()
    return dict(made)
