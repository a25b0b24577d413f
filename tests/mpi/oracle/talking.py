"""Intercommunicators, and communicators that have no parent which all of their ranks know: messages and errors.

What a call must bring follows from the standard: all data is a function of who sends what to whom.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from mpi4py import MPI

from tests.mpi.oracle import messages
from tests.mpi.oracle.completing import WAYS
from tests.mpi.oracle.groups import WORLD, connect, free, intercommunicators, intracommunicators
from tests.mpi.oracle.layouts import ORIGIN, family


def has_partitioned() -> bool:
    """Whether the host has such messages."""
    try:
        WORLD.Psend_init([bytearray(1), 1, MPI.BYTE], 1, MPI.PROC_NULL).Free()
    except NotImplementedError:
        return False
    return True


# ---------------------------------------------------------------- messages


class Partitioned:
    """A partitioned message to a rank and one from it, of integers in memory that types of one signature describe."""

    def __init__(
        self,
        draw: random.Random,
        comm: MPI.Comm,
        other: int,
        tag: int,
        number: int,
        ints: int,
        sent_in: int,
        got_in: int,
    ) -> None:
        self.draw, self.comm, self.other, self.tag, self.number, self.ints = (
            draw,
            comm,
            other,
            tag,
            number,
            ints,
        )
        self.sent_in, self.got_in, self.beside = sent_in, got_in, np.zeros(2, "i4")
        self.memory, self.places, requests = [], [], []
        for make, parts in ((comm.Psend_init, sent_in), (comm.Precv_init, got_in)):
            kind = draw.choice([one for one in family("i4") if one.units < 3])
            places = ORIGIN + kind.places(ints // kind.units)
            self.places.append(places)
            self.memory.append(np.zeros(2 * ORIGIN + (places.max() if ints else 0), "u1"))
            buffer = [self.memory[-1][ORIGIN:], ints // parts // kind.units, kind.type]
            requests.append(make(buffer, parts, other, tag))
        self.sending, self.receiving = requests

    def values(self, number: int, start: int) -> np.ndarray:
        """What is sent under a number."""
        return (np.arange(self.ints, dtype="i4") * 7 + number * 11 + start * 100003).view("u1")

    def fill(self, start: int) -> None:
        """Before a start."""
        self.memory[0][self.places[0]] = self.values(self.number, start)
        self.memory[1][:] = 0xA5

    def expect(self, number: int, start: int) -> None:
        """What is to come."""
        self.expected = self.memory[1].copy()
        self.expected[:] = 0xA5
        self.expected[self.places[1]] = self.values(number, start)

    def mark(self) -> None:
        """All partitions."""
        order, way = self.draw.sample(range(self.sent_in), self.sent_in), self.draw.randrange(3)
        if way == 0:
            self.sending.Pready_range(0, self.sent_in - 1)
        elif way == 1:
            self.sending.Pready_list(order)
        else:
            for partition in order:
                self.sending.Pready(partition)

    def watch(self) -> None:
        """Waits for each partition."""
        for partition in self.draw.sample(range(self.got_in), self.got_in):
            while not self.receiving.Parrived(partition):
                pass
            self.check([partition])

    def finish(self) -> None:
        """Waits for what is received, whose status tells what it is."""
        status = MPI.Status()
        self.receiving.Wait(status)
        told = status.Get_count(MPI.INT), status.source, status.tag
        assert told == (self.ints, self.other, self.tag), told
        assert self.receiving.Parrived(0)

    def check(self, partitions: Sequence[int]) -> None:
        """Of all of them what lies between them too."""
        part = len(self.places[1]) // self.got_in
        for partition in partitions:
            places = self.places[1][partition * part : (partition + 1) * part]
            assert np.array_equal(self.memory[1][places], self.expected[places]), f"partition {partition}"
        if len(partitions) == self.got_in:
            assert np.array_equal(self.memory[1], self.expected), "wrote beside its data"


class Talk:
    """Messages of every form on many communicators at once, with equal tags. `serial` numbers those of a pair."""

    def __init__(self, comms: dict[str, MPI.Comm], seed: int, partitioned: bool):
        self.with_partitioned = partitioned and has_partitioned()
        self.comms = [comms[name] for name in sorted(comms)]
        self.draw = random.Random(seed * 1000 + WORLD.rank)
        self.alike = random.Random(seed)
        self.sent: dict[tuple[int, int], int] = {}
        self.received: dict[tuple[int, int], int] = {}

    @staticmethod
    def partners(comm: MPI.Comm) -> int:
        return comm.remote_size if comm.is_inter else comm.size

    def content(
        self, length: int, at: int, comm: MPI.Comm, source: int, first: bool, serial: int
    ) -> np.ndarray:
        """Who sends what: the communicator, the rank, which group it is of, and the how-manieth of the pair."""
        return np.array([at, source, int(first), serial, length] + [serial] * length, dtype="i")

    def send(self, at: int, dest: int, tag: int, length: int) -> MPI.Request:
        comm = self.comms[at]
        serial = self.sent[at, dest] = self.sent.get((at, dest), 0) + 1
        data = self.content(length, at, comm, comm.rank, self.is_first(comm), serial)
        form = self.draw.choice(["Isend", "Issend", "Send_init", "Ssend_init", "Ibsend", "Bsend_init"])
        if "bsend" in form.lower() and length > 1000:
            form = "Isend"
        request = getattr(comm, form)(data, dest, tag)
        if form.endswith("init"):
            request.Start()
        return request

    def is_first(self, comm: MPI.Comm) -> bool:
        return not comm.is_inter or comm.rank >= 0 and self.lowest(comm)

    def lowest(self, comm: MPI.Intercomm) -> bool:
        own, remote = comm.Get_group(), comm.Get_remote_group()
        world = WORLD.Get_group()
        ranks = [g.Translate_ranks(None, world)[0] for g in (own, remote)]
        for group in (own, remote, world):
            group.Free()
        return ranks[0] < ranks[1]

    def take(self, at: int, status: MPI.Status, buffer: np.ndarray, tag: int) -> None:
        comm, source = self.comms[at], status.source
        serial = self.received[at, source] = self.received.get((at, source), 0) + 1
        length = status.Get_count(MPI.INT)
        first = not self.is_first(comm) if comm.is_inter else True
        expected = self.content(length - 5, at, comm, source, first, serial)
        assert status.tag == tag, (status.tag, tag)
        assert (buffer[:length] == expected).all(), (at, source, serial, buffer[:5], expected[:5])

    def receive(self, at: int, source: int, tag: int, most: int) -> None:
        comm, status = self.comms[at], MPI.Status()
        buffer = np.zeros(5 + most, dtype="i")
        tag_asked = self.draw.choice([tag, MPI.ANY_TAG])
        form = self.draw.choice(["Recv", "Irecv", "Recv_init", "Probe", "Mprobe", "Iprobe", "Improbe"])
        if form == "Recv":
            comm.Recv(buffer, source, tag_asked, status)
        elif form == "Irecv":
            comm.Irecv(buffer, source, tag_asked).Wait(status)
        elif form == "Recv_init":
            request = comm.Recv_init(buffer, source, tag_asked)
            request.Start()
            request.Wait(status)
            request.Free()
        elif form == "Probe":
            comm.Probe(source, tag_asked, status)
            comm.Recv(buffer, status.source, status.tag, status)
        elif form == "Iprobe":
            while not comm.Iprobe(source, tag_asked, status):
                pass
            comm.Recv(buffer, status.source, status.tag, status)
        elif form == "Mprobe":
            comm.Mprobe(source, tag_asked, status).Recv(buffer, status)
        else:
            while not (message := comm.Improbe(source, tag_asked, status)):
                pass
            message.Recv(buffer, status)
        self.take(at, status, buffer, tag)

    def round(self) -> None:
        """Everybody sends to everybody on all communicators, with one tag; then all of it is received."""
        tag, most = self.alike.randrange(4), self.alike.choice([0, 3, 300, 5000, 70000])
        order = list(range(len(self.comms)))
        self.draw.shuffle(order)
        requests = [
            self.send(at, dest, tag, self.draw.randrange(most + 1))
            for at in order
            for dest in self.draw.sample(range(self.partners(self.comms[at])), self.partners(self.comms[at]))
        ]
        self.draw.shuffle(order)
        for at in order:
            comm = self.comms[at]
            wild = self.draw.random() < 0.5
            for source in range(self.partners(comm)):
                self.receive(at, MPI.ANY_SOURCE if wild else source, tag, most)
        MPI.Request.Waitall(requests)
        for request in requests:
            if request != MPI.REQUEST_NULL:
                request.Free()
        WORLD.Barrier()  # what follows is not for receives from anybody
        self.shift(tag)
        WORLD.Barrier()
        if self.with_partitioned:
            self.partitioned(tag)

    def partitioned(self, tag: int) -> None:
        """In some starts, with everybody, on up to four communicators, two of each tag, beside ordinary ones of that tag: partitions
        that arrive as others, of types of one signature, marked, watched and completed in every way."""
        shapes = [(1, 1), (3, 2), (4, 6), (6, 4), (1, 6), (16, 2), (7, 7), (24, 36)]
        (sent_in, got_in), length = self.alike.choice(shapes), self.alike.choice([0, 1, 1, 40, 40, 300])
        ints = 2 * sent_in * got_in * (length if sent_in < 20 else length // 10)
        made = [
            Partitioned(
                self.draw, comm, other, tag, (at * 1000 + WORLD.rank) * 10 + twin, ints, sent_in, got_in
            )
            for at, comm in self.alike.sample([*enumerate(self.comms)], min(4, len(self.comms)))
            for other in range(self.partners(comm))
            for twin in range(2)
        ]
        for start in range(self.alike.randrange(1, 4)):
            for one in made:
                one.fill(start)
            requests = [request for one in made for request in (one.sending, one.receiving)]
            self.draw.shuffle(requests)
            MPI.Prequest.Startall(requests)
            ordinary = []
            for one in made:
                one.beside[:] = [start, -1]
                ordinary.append(one.comm.Isend(one.beside[:1], one.other, tag))
                ordinary.append(one.comm.Irecv(one.beside[1:], one.other, tag))
            for one in self.draw.sample(made, len(made)):
                one.mark()
            for one in made:
                of = self.comms.index(one.comm) * 1000 + self.world_rank(one.comm, one.other)
                one.expect(of * 10 + one.number % 10, start)
                if self.draw.random() < 0.4:
                    one.watch()
            if self.draw.random() < 0.3:
                for one in made:
                    one.finish()
                MPI.Request.Waitall(ordinary + requests)
            else:
                self.draw.choice(WAYS)(ordinary + requests)
            for one in made:
                one.check(range(got_in))
                assert one.beside[1] == start, "an ordinary message among partitioned ones"
        for one in made:
            one.sending.Free()
            one.receiving.Free()

    def shift(self, tag: int) -> None:
        """Combined sends and receives; with nobody, where the groups do not fit."""
        for at, comm in enumerate(self.comms):
            n, status = self.partners(comm), MPI.Status()
            me = comm.rank
            other = me if comm.is_inter else (me + 1) % n
            source = me if comm.is_inter else (me - 1) % n
            if comm.is_inter and me >= n:
                other = source = MPI.PROC_NULL
            data = np.array([at, WORLD.rank], dtype="i")
            if self.draw.random() < 0.5:
                got = np.zeros(2, dtype="i")
                comm.Sendrecv(data, other, tag, got, source, tag, status)
            else:
                got = data.copy()
                comm.Sendrecv_replace(got, other, tag, source, tag, status)
            assert status.source == source, (status.source, source)
            if source != MPI.PROC_NULL:
                assert got[0] == at and self.world_rank(comm, source) == got[1], (got, at, source)

    def world_rank(self, comm: MPI.Comm, rank: int) -> int:
        group = comm.Get_remote_group() if comm.is_inter else comm.Get_group()
        world = WORLD.Get_group()
        found = group.Translate_ranks([rank], world)[0]
        group.Free()
        world.Free()
        return found


def talk(
    first: int, seed: int, rounds: int, between: bool = True, partitioned: bool = True, sessions: bool = True
) -> list[str]:
    """Random rounds on communicators of every origin at once, and `between` two groups; the names of the communicators.

    MPICH has no partitioned messages on intercommunicators (5.0.2): it crashes.
    """
    comms: dict[str, MPI.Comm] = dict(intracommunicators(first, sessions))
    comms |= intercommunicators(first, sessions) if between else {}
    MPI.Attach_buffer(bytearray(1 << 20))
    talking = Talk(comms, seed, partitioned)
    for _ in range(rounds):
        talking.round()
    MPI.Detach_buffer()
    WORLD.Barrier()
    free(comms)
    return sorted(comms)


def partitioned(seed: int, rounds: int) -> None:
    """Rounds of such messages alone."""
    comms = messages.communicators()
    talking = Talk({str(at): comm for at, comm in enumerate(comms)}, seed, partitioned=True)
    for number in range(rounds if talking.with_partitioned else 0):
        talking.partitioned(number % 3)
        WORLD.Barrier()
    for comm in comms[1:]:
        comm.Free()


# ---------------------------------------------------------------- errors


def errors(first: int) -> list[str]:
    """The classes of errors of wrong arguments."""
    inter = connect(first)
    inter.Set_errhandler(MPI.ERRORS_RETURN)
    n, data = inter.remote_size, np.zeros(4 * WORLD.size, dtype="i")
    wrong = {
        "send beyond": lambda: inter.Send(data, n, 1),
        "send to a negative rank": lambda: inter.Send(data, -7, 1),
        "send with a negative tag": lambda: inter.Send(data, 0, -5),
        "isend beyond": lambda: inter.Isend(data, n, 1).Wait(),
        "send_init beyond": lambda: inter.Send_init(data, n, 1),
        "receive from beyond": lambda: inter.Recv(data, n, 1),
        "irecv from beyond": lambda: inter.Irecv(data, n + 3, 1),
        "probe of beyond": lambda: inter.Probe(n, 1),
        "iprobe of beyond": lambda: inter.Iprobe(n, 1),
        "bcast from beyond": lambda: inter.Bcast(data, n + 3),
        "reduce to beyond": lambda: inter.Reduce(data, None, MPI.SUM, n + 3),
        "reduce by nothing": lambda: inter.Reduce(data, None, MPI.OP_NULL, 0),
        "allreduce by nothing": lambda: inter.Allreduce(data, data.copy(), MPI.OP_NULL),
        "allreduce of bits of doubles": lambda: inter.Allreduce(np.zeros(4), np.zeros(4), MPI.BAND),
        "iallreduce of bits of doubles": lambda: inter.Iallreduce(np.zeros(4), np.zeros(4), MPI.BAND).Wait(),
        "allreduce in place": lambda: inter.Allreduce(MPI.IN_PLACE, data, MPI.SUM),
        "bcast of no type": lambda: inter.Bcast([data, 4, MPI.DATATYPE_NULL], 0),
    }
    own = inter.Get_size()
    lines = [f"sizes {own} {n}"]
    for name, call in wrong.items():
        try:
            call()
            lines.append(f"{name}: nothing")
        except MPI.Exception as error:
            lines.append(f"{name}: {error.Get_error_class()}")
    # With nobody.
    status = MPI.Status()
    inter.Send(data, MPI.PROC_NULL, 1)
    inter.Recv(data, MPI.PROC_NULL, 1, status)
    lines.append(f"from nobody: {status.source == MPI.PROC_NULL} {status.Get_count(MPI.INT)}")
    # A message that is too long.
    if inter.rank == 0:
        request = inter.Isend([data, 4], 0, 9)
        try:
            inter.Recv([data[4:], 2], 0, 9)
            lines.append("truncated: nothing")
        except MPI.Exception as error:
            lines.append(f"truncated: {error.Get_error_class()}")
        request.Wait()
    inter.Barrier()
    value = np.array([inter.rank + 1], dtype="i")
    total = np.zeros(1, dtype="i")
    inter.Allreduce(value, total)
    lines.append(f"works afterwards: {total[0] == n * (n + 1) // 2}")
    inter.Free()
    return lines
