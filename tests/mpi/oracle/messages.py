"""Random programs of messages, checked against MPI's rules of matching. A round is

    {"messages": [{"source", "dest", "comm", "tag", "bytes", "mode", "stride"}], "wild": int, "style": int}

Ranks are taken modulo the size. Within a round a rank receives everything that is sent to it. Every message says in
its bytes where it comes from and which it is, so the receiver can tell:

- its content is whole, its status tells source, tag and length;
- no receive got a later message of a sender while an earlier one that it would have matched went to a receive that was
  posted later.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field

import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
ME, SIZE = WORLD.Get_rank(), WORLD.Get_size()
SIZES = [0, 1, 39, 40, 41, 100, 255, 256, 257, 504, 505, 1024, 1025, 1960, 1961, 4096, 8191, 8192, 8193]
SIZES += [16384, 16385, 32744, 40000, 65536, 70001, 262144, 262145, 300000, 1 << 20]
MODES = ["send", "isend", "ssend", "issend", "bsend", "ibsend", "persistent", "rsend-not"]
GUARD = 171


def communicators() -> list[MPI.Intracomm]:
    """Communicators with the same ranks in several orders."""
    return [WORLD, WORLD.Dup(), WORLD.Split(0, -ME), WORLD.Create_cart([SIZE], reorder=False)]


def generate(seed: int, rounds: int) -> list[dict]:
    """A random program, the same on all ranks."""
    rng = random.Random(seed)
    program = []
    for _ in range(rounds):
        messages = [
            {
                "source": rng.randrange(SIZE),
                "dest": rng.randrange(SIZE),
                "comm": rng.randrange(4),
                "tag": rng.choice([0, 1, 2, 77, 30000]),
                "bytes": rng.choice(SIZES) if rng.random() < 0.8 else rng.randrange(20000),
                "mode": rng.randrange(len(MODES)),
                "stride": rng.choice([0, 0, 0, 1, 2]),
            }
            for _ in range(rng.choice([1, 3, 8, 30]))
        ]
        program.append(
            {"messages": messages, "wild": rng.randrange(1 << 30), "style": rng.randrange(1 << 30)}
        )
    return program


AT = np.arange(1 << 20, dtype=np.uint32)
PATTERN = (AT * 7 + (AT >> 8) * 13).astype(np.uint8)


def content(seed: int, length: int) -> np.ndarray:
    """Bytes that name their message and their place."""
    return PATTERN[:length] + np.uint8(seed * 31 & 0xFF)


@dataclass
class Layout:
    """Memory for a message: dense, or blocks of some bytes with gaps."""

    length: int
    stride: int
    count: int = field(init=False)
    datatype: MPI.Datatype = field(init=False)

    def __post_init__(self) -> None:
        block = {0: 1, 1: 8, 2: 3}[self.stride]
        if self.stride == 0 or self.length < block:
            self.stride = 0
            self.count, self.datatype = self.length, MPI.BYTE
            self.places = slice(0, self.length)
            self.span = self.length
        else:
            whole, rest = divmod(self.length, block)
            if rest:
                lengths = [block] * whole + [rest]
                starts = list(range(0, len(lengths) * (block + 5), block + 5))
                self.datatype = MPI.BYTE.Create_indexed(lengths, starts).Commit()
            else:
                self.datatype = MPI.BYTE.Create_vector(whole, block, block + 5).Commit()
            self.count, at = 1, np.arange(self.length)
            self.places = at + at // block * 5
            self.span = int(self.places[-1]) + 1
        self.memory = np.full(self.span + 64, GUARD, np.uint8)

    def fill(self, data: np.ndarray) -> None:
        self.memory[self.places] = data

    def read(self) -> np.ndarray:
        return self.memory[self.places]

    def untouched_elsewhere(self) -> bool:
        mask = np.ones(len(self.memory), bool)
        mask[self.places] = False
        return bool((self.memory[mask] == GUARD).all())

    def spec(self) -> list:
        return [self.memory, self.count, self.datatype]

    def free(self) -> None:
        if self.stride:
            self.datatype.Free()


@dataclass
class Receive:
    """A receive, as it was posted and as it came out."""

    comm: int
    source: int
    tag: int
    order: int
    layout: Layout
    status: MPI.Status = field(default_factory=MPI.Status)
    message: int = -1

    def would_match(self, comm: int, source: int, tag: int) -> bool:
        return (
            self.comm == comm and self.source in (MPI.ANY_SOURCE, source) and self.tag in (MPI.ANY_TAG, tag)
        )


class Round:
    """One round on this rank."""

    def __init__(self, number: int, plan: dict, comms: list[MPI.Intracomm], rank_in: list[list[int]]) -> None:
        self.number, self.comms, self.rank_in = number, comms, rank_in
        self.messages = plan["messages"]
        self.rng = random.Random(plan["style"] * 1009 + ME)
        self.wild = random.Random(plan["wild"])
        self.requests: list[MPI.Request] = []
        self.kept: list[Layout] = []
        self.receives: list[Receive] = []

    def seed_of(self, k: int) -> int:
        return self.number * 1000 + k

    def ends(self, m: dict) -> tuple[int, int]:
        return m["source"] % SIZE, m["dest"] % SIZE

    def send(self, k: int, blocking_allowed: bool) -> None:
        m = self.messages[k]
        comm = self.comms[m["comm"]]
        dest = self.rank_in[m["comm"]][m["dest"] % SIZE]
        layout = Layout(m["bytes"], m["stride"])
        layout.fill(content(self.seed_of(k), m["bytes"]))
        self.kept.append(layout)
        mode = MODES[m["mode"] % len(MODES)]
        if mode in ("send", "ssend") and not blocking_allowed:
            mode = "i" + mode
        args = (layout.spec(), dest, m["tag"])
        if mode == "send":
            comm.Send(*args)
        elif mode == "ssend":
            comm.Ssend(*args)
        elif mode == "bsend":
            comm.Bsend(*args)
        elif mode == "ibsend":
            self.requests.append(comm.Ibsend(*args))
        elif mode == "issend":
            self.requests.append(comm.Issend(*args))
        elif mode == "persistent":
            request = comm.Send_init(*args)
            request.Start()
            self.requests.append(request)
        else:
            self.requests.append(comm.Isend(*args))

    def patterns(self) -> list[Receive]:
        """One receive per message to this rank; per communicator all name the source, or none, and so for the tag."""
        found = []
        for c in range(4):
            any_source, any_tag = self.wild.random() < 0.3, self.wild.random() < 0.3
            for m in self.messages:
                source, dest = self.ends(m)
                if dest != ME or m["comm"] != c:
                    continue
                # Whichever message comes must fit.
                longest = max(
                    n["bytes"]
                    for n in self.messages
                    if self.ends(n)[1] == ME
                    and n["comm"] == c
                    and (any_source or self.ends(n)[0] == source)
                    and (any_tag or n["tag"] == m["tag"])
                )
                same = all(
                    n["bytes"] == longest and n["stride"] == m["stride"]
                    for n in self.messages
                    if self.ends(n)[1] == ME and n["comm"] == c
                )
                stride = m["stride"] if same else self.rng.choice([0, 0, 1])
                receive = Receive(
                    c,
                    MPI.ANY_SOURCE if any_source else self.rank_in[c][source],
                    MPI.ANY_TAG if any_tag else m["tag"],
                    0,
                    Layout(longest, stride),
                )
                found.append(receive)
        self.rng.shuffle(found)
        for order, receive in enumerate(found):
            receive.order = order
        return found

    def run(self) -> None:
        mine = [k for k, m in enumerate(self.messages) if self.ends(m)[0] == ME]
        self.receives = self.patterns()
        early = self.rng.random() < 0.5
        posted: list[tuple[Receive, MPI.Request]] = []
        if early:
            posted = [(r, self.comms[r.comm].Irecv(r.layout.spec(), r.source, r.tag)) for r in self.receives]
        idle = None
        if self.rng.random() < 0.2:
            idle = self.comms[0].Irecv(np.zeros(4, "u1"), MPI.ANY_SOURCE, 9999)
        for k in mine:
            self.send(k, blocking_allowed=False)
        if early:
            self.complete(posted)
        else:
            for r in self.receives:
                self.receive(r)
        if idle is not None:
            idle.Cancel()
            status = MPI.Status()
            idle.Wait(status)
            assert status.Is_cancelled()
        while self.requests and not MPI.Request.Testall(self.requests):
            pass
        for request in self.requests:
            if request != MPI.REQUEST_NULL:
                request.Free()
        self.check()
        for layout in self.kept + [r.layout for r in self.receives]:
            layout.free()

    def complete(self, posted: list[tuple[Receive, MPI.Request]]) -> None:
        requests = [request for _, request in posted]
        style = self.rng.randrange(5)
        if style == 0:
            statuses = [MPI.Status() for _ in requests]
            MPI.Request.Waitall(requests, statuses)
            for (r, _), status in zip(posted, statuses, strict=True):
                r.status = status
        elif style == 1:
            for _ in requests:
                status = MPI.Status()
                at = MPI.Request.Waitany(requests, status)
                posted[at][0].status = status
        elif style == 2:
            left = len(requests)
            while left:
                statuses = [MPI.Status() for _ in requests]
                done = MPI.Request.Waitsome(requests, statuses) or []
                for at, status in zip(done, statuses, strict=False):
                    posted[at][0].status = status
                left -= len(done)
        elif style == 3:
            for r, request in posted:
                while not request.Test(r.status):
                    pass
        else:
            for r, request in reversed(posted):
                request.Wait(r.status)

    def receive(self, r: Receive) -> None:
        comm = self.comms[r.comm]
        style = self.rng.randrange(4)
        if style == 0:
            comm.Recv(r.layout.spec(), r.source, r.tag, r.status)
        elif style == 1:
            probed = MPI.Status()
            comm.Probe(r.source, r.tag, probed)
            # What was probed is what is received.
            comm.Recv(r.layout.spec(), probed.source, probed.tag, r.status)
            assert probed.Get_count(MPI.BYTE) == r.status.Get_count(MPI.BYTE)
        elif style == 2:
            message = comm.Mprobe(r.source, r.tag, r.status)
            message.Recv(r.layout.spec(), r.status)
        else:
            message = None
            while message is None:
                message = comm.Improbe(r.source, r.tag, r.status)
            message.Irecv(r.layout.spec()).Wait(r.status)

    def check(self) -> None:
        taken: set[int] = set()
        # Messages of one sender, in the order in which they were sent.
        for r in sorted(self.receives, key=lambda r: r.order):
            source, tag, length = r.status.source, r.status.tag, r.status.Get_count(MPI.BYTE)
            assert r.would_match(r.comm, source, tag), (r, source, tag)
            data = r.layout.read()
            for k, m in enumerate(self.messages):
                if k in taken or m["comm"] != r.comm or m["tag"] != tag or m["bytes"] != length:
                    continue
                if self.ends(m)[1] != ME or self.rank_in[r.comm][self.ends(m)[0]] != source:
                    continue
                if np.array_equal(data[:length], content(self.seed_of(k), length)):
                    r.message = k
                    taken.add(k)
                    break
            assert r.message >= 0, (
                f"round {self.number}: no message of {length} bytes from {source}, tag {tag}"
            )
            assert (data[length:] == GUARD).all() and r.layout.untouched_elsewhere()
        for first in self.receives:
            for second in self.receives:
                if first.order >= second.order or first.comm != second.comm or not first.layout.length:
                    continue
                a, b = self.messages[first.message], self.messages[second.message]
                if self.ends(a)[0] != self.ends(b)[0] or first.message < second.message or a["bytes"] == 0:
                    continue
                if b["bytes"] == 0:
                    continue  # empty messages cannot be told apart
                overtaken = first.would_match(
                    second.comm, self.rank_in[first.comm][self.ends(b)[0]], b["tag"]
                )
                assert not overtaken, (
                    f"round {self.number}: message {first.message} overtook {second.message}"
                )


def drawn(seed: int, rounds: int, seconds: float = 60) -> int:
    """A random program; slow machines do less of it."""
    return program(generate(seed, rounds), seconds)


def program(rounds: list[dict], seconds: float = 60) -> int:
    """A program that is given; how many of its rounds were made."""
    comms = communicators()
    rank_in = []
    for comm in comms:
        ranks = [0] * SIZE
        for r, world_rank in enumerate(MPI.Group.Translate_ranks(comm.Get_group(), None, WORLD.Get_group())):
            ranks[world_rank] = r
        rank_in.append(ranks)
    MPI.Attach_buffer(np.zeros(80 << 20, "u1"))
    end, done = time.monotonic() + seconds, 0
    for number, plan in enumerate(rounds):
        Round(number, plan, comms, rank_in).run()
        WORLD.Barrier()  # a wildcard must not take a message of the next round
        done += 1
        if WORLD.bcast(time.monotonic() > end if number % 8 == 7 else False):
            break
    MPI.Detach_buffer()
    for comm in comms[1:]:
        comm.Free()
    return done
