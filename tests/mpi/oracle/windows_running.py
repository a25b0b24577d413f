"""Random one-sided programs on windows of every kind, checked against a sequential truth (windows_plan.py)."""

from __future__ import annotations

import ctypes
import random
import time

import numpy as np
from mpi4py import MPI

from tests.mpi.oracle.windows import Layout, reachable
from tests.mpi.oracle.windows_plan import Flush, Op, Plan, Stage, step

WORLD = MPI.COMM_WORLD
KINDS = ["create", "allocate", "shared", "noncontiguous", "dynamic"]
SIZES = [0, 8, 64, 777, 4096, 4096, 20000, 20001, 100003]
HANDLE = ctypes.c_int if MPI._sizeof(MPI.Win) == 4 else ctypes.c_void_p
LIBRARY = ctypes.CDLL(MPI.__file__)
# What hosts get wrong, and programs here avoid: after locks with MPI_MODE_NOCHECK the ranks of MPICH 5.0 may wait for their
# next exclusive locks forever; with it Open MPI 5.0 never leaves MPI_Win_complete or MPI_Win_wait.
OPEN_MPI = MPI.Get_library_version().startswith("Open MPI")
LARGE = MPI.Get_version() >= (4, 0)
GUARD = 0xA5
# Parameters: buffer, count, datatype, rank, displacement, operator, window, request.
PARAMETERS = {
    "Put": "bntrantw",
    "Get": "bntrantw",
    "Accumulate": "bntrantow",
    "Get_accumulate": "bntbntrantow",
    "Fetch_and_op": "bbtraow",
    "Compare_and_swap": "bbbtraw",
}


def call(op: Op, arguments: list, request: bool, large: bool) -> MPI.Request | None:
    """Calls one of the C functions that move data."""
    large = large and LARGE and op.name not in ("Fetch_and_op", "Compare_and_swap")
    types = {"b": ctypes.c_void_p, "n": ctypes.c_longlong if large else ctypes.c_int, "r": ctypes.c_int}
    types |= {"a": ctypes.c_ssize_t}
    parameters = PARAMETERS[op.name]
    converted = [types.get(kind, HANDLE)(value) for kind, value in zip(parameters, arguments, strict=True)]
    name = f"R{op.name.lower()}" if request else op.name
    handle = HANDLE()
    if request:
        converted.append(ctypes.byref(handle))
    code = getattr(LIBRARY, f"MPI_{name}{'_c' if large else ''}")(*converted)
    if code:
        raise RuntimeError(f"{op}: {MPI.Get_error_string(code)}")
    return (
        MPI.Request.fromhandle((handle.value or 0) & (1 << 8 * ctypes.sizeof(HANDLE)) - 1)
        if request
        else None
    )


class Window:
    """A window of one kind; a rank's memory is its regions one behind the other."""

    def __init__(self, rng: random.Random, comm: MPI.Intracomm, kind: str) -> None:
        self.comm, self.kind = comm, kind
        dynamic = kind == "dynamic"
        self.lengths = [
            [rng.choice(SIZES) for _ in range(rng.randrange(4) if dynamic else 1)] for _ in range(comm.size)
        ]
        self.units = [1 if dynamic else rng.choice([1, 1, 2, 4, 8, 8, 3, 16, 24]) for _ in range(comm.size)]
        if kind == "shared":  # contiguous, and each rank's memory aligned for every type
            self.lengths = [[n // 32 * 32 for n in mine] for mine in self.lengths]
        hints = {}
        if kind == "noncontiguous":
            hints["alloc_shared_noncontig"] = "true"
        if rng.random() < 0.3:
            hints["accumulate_ops"] = "same_op_no_op"
        if rng.random() < 0.3:
            hints["accumulate_ordering"] = "rar,raw,war,waw"
        if rng.random() < 0.5:
            self.units = [self.units[0]] * comm.size
            hints["same_disp_unit"] = "true"
        if rng.random() < 0.3 and not dynamic:
            self.lengths = [self.lengths[0]] * comm.size
            hints["same_size"] = "true"
        self.locks = rng.random() < 0.85 or kind in ("shared", "noncontiguous")
        if not self.locks:
            hints["no_locks"] = "true"
        info = MPI.Info.Create(hints)
        me, unit = comm.rank, self.units[comm.rank]
        size = sum(self.lengths[me])
        # Small blocks of a program's own heap are out of its peers' reach.
        self.of_mpi = MPI.Alloc_mem(size + 128) if kind == "create" and rng.random() < 0.6 else None
        self.served = comm.size > 1 and (self.of_mpi is not None or kind not in ("create", "dynamic"))
        self.kept = [aligned(length, self.of_mpi) for length in self.lengths[me]]
        if kind == "create":
            self.win = MPI.Win.Create(self.kept[0], unit, info, comm)
        elif kind == "allocate":
            self.win = MPI.Win.Allocate(size, unit, info, comm)
        elif dynamic:
            self.win = MPI.Win.Create_dynamic(info, comm)
            for memory in self.kept:
                if len(memory):
                    self.win.Attach(memory)
        else:
            self.win = MPI.Win.Allocate_shared(size, unit, info, comm)
        info.Free()
        if kind not in ("create", "dynamic"):
            self.kept = [np.frombuffer(self.win.tomemory(), np.uint8) if size else np.zeros(0, np.uint8)]
        if kind in ("shared", "noncontiguous") and any(map(sum, self.lengths)):  # the first that has some
            of_nobody, _ = self.win.Shared_query(MPI.PROC_NULL)
            first = next(rank for rank, mine in enumerate(self.lengths) if sum(mine))
            assert of_nobody.address == self.win.Shared_query(first)[0].address
        self.win.Set_errhandler(MPI.ERRORS_RETURN)
        starts = [memory.ctypes.data if dynamic else 0 for memory in self.kept]
        self.starts = comm.allgather(starts)

    @property
    def regions(self) -> list[list[tuple[int, int]]]:
        return [[(sum(mine[:k]), length) for k, length in enumerate(mine)] for mine in self.lengths]

    def displacement(self, rank: int, place: int) -> int:
        """The target displacement of a byte of a rank's memory."""
        for (start, length), address in zip(self.regions[rank], self.starts[rank], strict=True):
            if start <= place < start + length:
                return (address + place - start) // self.units[rank]
        return 0

    def read(self) -> np.ndarray:
        """A copy of this rank's memory by plain loads."""
        return np.concatenate([np.zeros(0, np.uint8), *self.kept])

    def write(self, values: np.ndarray) -> None:
        """Plain stores."""
        for (start, length), memory in zip(self.regions[self.comm.rank], self.kept, strict=True):
            memory[:] = values[start : start + length]

    def read_peer(self, rank: int) -> np.ndarray:
        """The memory of another rank of a shared window, by plain loads."""
        memory, unit = self.win.Shared_query(rank)
        length = sum(self.lengths[rank])
        # Open MPI 5.0 tells whole pages where memory is not contiguous.
        assert memory.nbytes >= length and (unit == self.units[rank] or not length), (rank, unit)
        return np.frombuffer(memory, np.uint8)[:length].copy() if length else np.zeros(0, np.uint8)

    def free(self) -> None:
        if self.kind == "dynamic":
            self.comm.Barrier()
            for memory in self.kept:
                if len(memory):
                    self.win.Detach(memory)
        self.kept = []
        self.win.Free()
        if self.of_mpi is not None:
            MPI.Free_mem(self.of_mpi)


def aligned(length: int, memory: MPI.buffer | None = None) -> np.ndarray:
    """Memory, or such as there is, at a multiple of 32 that is not one of 64."""
    raw = np.zeros(length + 128, np.uint8) if memory is None else np.frombuffer(memory, np.uint8)
    start = -raw.ctypes.data % 64 + 32
    return raw[start : start + length]


class Pending:
    """An operation under way, with its buffers."""

    def __init__(self, op: Op, window: Window) -> None:
        self.op = op
        none = (None, 0, MPI.BYTE)
        given, ours = self.origin = self.buffer(op.here, op.given)
        taken = None
        if op.name == "Get":
            given = ours = None
        if op.result is not None:
            taken = self.buffer(op.result, b"")
        self.result = taken[0] if taken else None
        self.before = given.copy() if given is not None else None
        target = MPI.PROC_NULL if op.target is None else op.target
        where = 0 if op.target is None else window.displacement(op.target, op.base)
        types = [layout.make() for layout in (op.here, op.there)]
        types.append(op.result.make() if op.result else None)
        here, there, result = types
        no_op = op.operator == "NO_OP"
        source = none if given is None or (no_op and op.number % 2) else (ours, op.here.count, here)
        handles = [MPI._handleof(t) if t is not None else 0 for t in types]
        arguments: list = []
        if op.name == "Get":
            arguments += [taken[1], op.here.count, handles[0]]
        elif op.name in ("Put", "Accumulate", "Get_accumulate"):
            arguments += [source[0], source[1], MPI._handleof(source[2])]
        if op.name == "Get_accumulate":
            arguments += [taken[1], op.result.count, handles[2]]
        if op.name in ("Fetch_and_op", "Compare_and_swap"):
            arguments += [source[0] if op.name == "Fetch_and_op" else ours]
            if op.name == "Compare_and_swap":
                self.compare = np.frombuffer(op.compare, np.uint8).copy()
                arguments += [self.compare.ctypes.data]
            arguments += [taken[1], handles[0], target, where]
        else:
            arguments += [target, where, op.there.count, handles[1]]
        if "o" in PARAMETERS[op.name]:
            arguments += [MPI._handleof(getattr(MPI, op.operator))]
        arguments += [MPI._handleof(window.win)]
        self.request = call(op, arguments, op.request, op.large)
        for datatype, layout in zip(types, (op.here, op.there, op.result), strict=True):
            if layout is not None and layout.derived:
                datatype.Free()  # what is under way keeps it

    @staticmethod
    def buffer(layout: Layout, values: bytes) -> tuple[np.ndarray, int]:
        """Memory with guards around the layout, and the layout's address."""
        memory = aligned(layout.span + 128)
        memory[:] = GUARD
        if values:
            memory[64 + layout.places] = np.frombuffer(values, np.uint8)
        return memory, memory.ctypes.data + 64

    def complete(self) -> None:
        """It is complete at the origin: results are there, and buffers are the program's again."""
        op = self.op
        if self.before is not None:
            assert (self.before == self.origin[0]).all(), f"{op} changed what it was given"
            self.origin[0][:] = 0xEE
        if self.result is None:
            return
        places = 64 + op.result.places
        self.fetched = self.result[places].tobytes()
        untouched = np.ones(len(self.result), bool)
        if op.target is not None:
            untouched[places] = False
        assert (self.result[untouched] == GUARD).all(), f"{op} wrote outside of its result"
        if op.fetched is not None:
            got, want = np.frombuffer(self.fetched, np.uint8), np.frombuffer(op.fetched, np.uint8)
            wrong = np.flatnonzero((got != want) & op.significant)
            assert not len(wrong), f"{op} fetched {got[wrong[:8]]}, not {want[wrong[:8]]}, at {wrong[:8]}"


class Round:
    """One plan, carried out."""

    def __init__(self, window: Window, rng: random.Random, seed: int) -> None:
        self.window, self.win, self.comm, self.me = window, window.win, window.comm, window.comm.rank
        self.rng, self.mine = rng, random.Random(seed * 1009 + window.comm.rank)
        self.plan = Plan(rng, window.regions, window.units)
        self.pending: list[Pending] = []
        self.done: list[Pending] = []
        self.messages: list[tuple[MPI.Request, np.ndarray]] = []

    def run(self) -> None:
        epochs = [self.fences, self.fences, self.general]
        if self.window.locks:
            epochs += [self.lock_all, self.lock_all, self.locks, self.locks]
        self.set()
        self.comm.Barrier()
        self.rng.choice(epochs)()
        self.comm.Barrier()
        self.check(self.plan.stages[-1])
        self.check_chains()
        self.comm.Barrier()

    def set(self) -> None:
        """Gives memory its values by plain stores, in an epoch of its own where there are locks."""
        if self.window.locks:
            self.win.Lock(self.me, MPI.LOCK_EXCLUSIVE)
        else:
            self.win.Fence()
        self.window.write(self.plan.initial[self.me])
        if self.window.locks:
            self.win.Unlock(self.me)
        else:
            self.win.Fence(MPI.MODE_NOSUCCEED)

    # Epochs.

    def fences(self) -> None:
        stages = self.rng.randrange(1, 4)
        everybody = list(range(self.comm.size))
        for _ in range(stages):
            self.plan.stage(self.rng.choice([2, 8, 25]), lambda _: everybody, False, False, False)
        checks = [self.rng.random() < 0.3 for _ in range(stages)]
        closed = self.rng.random() < 0.8
        self.win.Fence(self.asserts(self.plan.stages[0]) | self.rng.choice([0, MPI.MODE_NOPRECEDE]))
        for k, stage in enumerate(self.plan.stages):
            self.issue(stage)
            last = k + 1 == stages
            if last or checks[k]:
                # At the end NOSUCCEED, or a fence that could begin an epoch.
                self.win.Fence(MPI.MODE_NOSUCCEED | MPI.MODE_NOPUT if last and closed else 0)
                self.complete()
                self.check(stage)
            if last and not closed:
                self.win.Fence(MPI.MODE_NOSUCCEED | MPI.MODE_NOPRECEDE | MPI.MODE_NOSTORE)
            if not last:
                assertion = MPI.MODE_NOSTORE | self.asserts(self.plan.stages[k + 1])
                self.win.Fence(assertion | (MPI.MODE_NOPRECEDE if checks[k] else 0))
                self.complete()

    def asserts(self, following: Stage) -> int:
        """NOPUT where nobody writes here in the stage that follows."""
        written = any(
            isinstance(item, Op) and item.target == self.me and item.name != "Get" for item in following.items
        )
        return MPI.MODE_NOPUT if not written and self.mine.random() < 0.7 else 0

    def general(self) -> None:
        """Post, start, complete, wait, among random groups."""
        ranks = self.comm.size
        everybody = self.comm.Get_group()
        for _ in range(self.rng.randrange(1, 4)):
            reach = [[t for t in range(ranks) if self.rng.random() < 0.6] for _ in range(ranks)]
            checked, tests = self.rng.random() < 0.7 or OPEN_MPI, self.mine.random() < 0.4
            self.plan.stage(self.rng.choice([2, 8, 25]), lambda o, reach=reach: reach[o], False, False, False)
            stage = self.plan.stages[-1]
            targets = reach[self.me]
            origins = [o for o in range(ranks) if self.me in reach[o]]
            self.mine.shuffle(targets)
            post, start = everybody.Incl(origins), everybody.Incl(targets)
            assertion = 0 if checked else MPI.MODE_NOCHECK
            if origins:
                self.win.Post(post, self.asserts(stage) | assertion)
            if not checked:
                self.comm.Barrier()
            if targets:
                self.win.Start(start, assertion)
            start.Free()
            post.Free()
            self.issue(stage)
            if targets:
                self.win.Complete()
                self.complete()
            if origins and tests:
                while not self.win.Test():
                    pass
            elif origins:
                self.win.Wait()
        everybody.Free()

    def lock_all(self) -> None:
        everybody = list(range(self.comm.size))
        stages = self.rng.randrange(1, 4)
        for _ in range(stages):
            self.plan.stage(self.rng.choice([2, 8, 25]), lambda _: everybody, True, True, True)
        self.win.Lock_all(self.rng.choice([0, MPI.MODE_NOCHECK]) if OPEN_MPI else 0)
        for k, stage in enumerate(self.plan.stages):
            self.exchange()
            self.issue(stage)
            self.wait()
            if k + 1 < stages:
                self.win.Flush_all()
                self.complete()
                self.comm.Barrier()
                self.win.Sync()
                self.check(stage)
                self.comm.Barrier()
        self.win.Unlock_all()
        self.complete()
        assert not self.messages

    def locks(self) -> None:
        """Locks of single ranks: one after the other, or all held at once, taken in the order of ranks."""
        kind = self.rng.choice(["shared", "exclusive", "mixed", "nocheck"])
        everybody = list(range(self.comm.size))
        self.plan.stage(self.rng.choice([2, 8, 25, 60]), lambda _: everybody, True, True, True)
        items = [item for item in self.plan.stages[0].items if item.origin == self.me]
        together = self.mine.random() < 0.4
        exclusive = {"shared": 0.0, "exclusive": 1.0, "mixed": 0.4, "nocheck": 0.0}[kind]
        if kind in ("shared", "nocheck"):
            self.exchange()

        def lock(target: int) -> None:
            chosen = MPI.LOCK_EXCLUSIVE if self.mine.random() < exclusive else MPI.LOCK_SHARED
            unchecked = kind == "nocheck" and OPEN_MPI
            self.win.Lock(target, chosen, MPI.MODE_NOCHECK if unchecked else 0)

        if together:
            for target in everybody:
                lock(target)
            for item in items:
                self.do(item)
            self.wait()
            self.mine.shuffle(everybody)
            for target in everybody:
                self.win.Unlock(target)
                self.complete(target)
        else:
            for target in self.mine.sample(everybody, len(everybody)):
                lock(target)
                for item in items:
                    if item.target == target or (isinstance(item, Flush) and item.target is None):
                        if isinstance(item, Flush) and item.relock:
                            self.wait()
                            self.win.Unlock(target)
                            self.complete(target)
                            lock(target)
                        self.do(item)
                self.wait()
                self.win.Unlock(target)
                self.complete(target)
            for item in items:
                if isinstance(item, Op) and item.target is None:
                    self.win.Lock(self.me, MPI.LOCK_SHARED)
                    self.do(item)
                    self.wait()
                    self.win.Unlock(self.me)
        self.wait()
        self.complete()

    # Within epochs.

    def issue(self, stage: Stage) -> None:
        for item in stage.items:
            if item.origin == self.me:
                self.do(item)

    def do(self, item: Op | Flush) -> None:
        if isinstance(item, Op):
            self.pending.append(Pending(item, self.window))
            if item.request and self.mine.random() < 0.3:
                self.wait()
            return
        if item.target is None:
            self.win.Flush_local_all() if item.local else self.win.Flush_all()
        else:
            self.win.Flush_local(item.target) if item.local else self.win.Flush(item.target)
        if not (OPEN_MPI and (item.local or item.target is None)):
            self.complete(item.target)

    def exchange(self) -> None:
        """Starts messages around the ring, to be waited for together with operations."""
        size = self.comm.size
        for tag in range(self.mine.randrange(1, 2) if size > 1 else 0):
            got = np.zeros(700, np.int32)
            self.messages.append((self.comm.Irecv(got, (self.me - 1) % size, tag), got))
            sent = np.full(700, self.me, np.int32)
            self.messages.append((self.comm.Isend(sent, (self.me + 1) % size, tag), sent))

    def wait(self) -> None:
        """Completes all requests, operations' and messages' in one array."""
        waiting = [p for p in self.pending if p.request is not None]
        entries: list = waiting + self.messages
        self.mine.shuffle(entries)
        requests = [e.request if isinstance(e, Pending) else e[0] for e in entries]
        style = self.mine.randrange(4)
        if style == 0:
            MPI.Request.Waitall(requests)
        elif style == 1:
            for _ in requests:
                at = MPI.Request.Waitany(requests)
                if isinstance(entries[at], Pending):
                    entries[at].complete()
        elif style == 2:
            while not MPI.Request.Testall(requests):
                pass
        else:
            while MPI.Request.Waitsome(requests):
                pass
        for p in waiting:
            p.request = None
            if style != 1:
                p.complete()
            self.pending.remove(p)
            self.done.append(p)
        for request, got in self.messages[::2]:
            del request
            assert (got == (self.me - 1) % self.comm.size).all(), "a message among operations is wrong"
        self.messages = []

    def complete(self, target: int | None = None) -> None:
        """What has gone to the target, or to all, is complete at the origin."""
        for p in [p for p in self.pending if target is None or p.op.target == target]:
            if p.request is None:
                p.complete()
                self.pending.remove(p)
                self.done.append(p)

    # What came out.

    def check(self, stage: Stage) -> None:
        """This rank's memory, and through shared memory its neighbour's."""
        self.compare(self.window.read(), stage, self.me)
        if self.window.kind in ("shared", "noncontiguous"):
            peer = (self.me + 1) % self.comm.size
            self.compare(self.window.read_peer(peer), stage, peer)

    def compare(self, memory: np.ndarray, stage: Stage, rank: int) -> None:
        wrong = np.flatnonzero((memory != stage.memory[rank]) & ~stage.vague[rank])
        if len(wrong):
            items = [item for some in self.plan.stages for item in some.items]
            ops = [item for item in items if isinstance(item, Op) and item.target == rank]
            guilty = [op for op in ops if np.isin(wrong[:4], op.base + op.there.places).any()]
            got, want = memory[wrong[:8]], stage.memory[rank][wrong[:8]]
            raise AssertionError(
                f"memory of {rank} is {got}, not {want}, at {wrong[:8]}; touched by {guilty}"
            )

    def check_chains(self) -> None:
        """What was fetched here by atomic operations of all has to be a path."""
        fetched: dict[int, bytes] = {}
        for part in self.comm.allgather(
            {p.op.number: p.fetched for p in self.done if p.op.chain and p.op.target is not None}
        ):
            fetched |= part
        steps: dict[tuple[int, int], list] = {}
        final = self.window.read()
        for op in self.plan.chains:
            if op.target != self.me:
                continue
            size, mask = op.basic.size, op.basic.significant()
            for k, offset in enumerate(op.there.offsets):
                cut = slice(k * size, (k + 1) * size)
                before = fetched[op.number][cut]
                after = step(op, before, op.given[cut])
                edge = tuple((np.frombuffer(b, np.uint8) * mask).tobytes() for b in (before, after))
                steps.setdefault((op.base + int(offset), size), []).append((edge, mask, op))
        for (place, size), found in steps.items():
            mask = found[0][1]
            start, end = (
                (m[place : place + size] * mask).tobytes() for m in (self.plan.memory[self.me], final)
            )
            edges = [edge for edge, _, _ in found]
            assert reachable(edges, start, end), (
                f"no order explains {edges} from {start!r} to {end!r}: {found[0][2]}"
            )


def programs(seed: int, rounds: int, seconds: float, only: int | None = None) -> dict[str, int]:
    """Random rounds, fewer on slow machines, or `only` the one that a failure names; how much was
    done, and how many windows Nearfield has to have served."""
    comms = [WORLD, WORLD.Split(0, -WORLD.rank), WORLD.Split(WORLD.rank % 2, 0), MPI.COMM_SELF]
    end = time.monotonic() + seconds
    done = operations = served = 0
    windows: list[Window] = []
    for number in range(rounds):
        rng = random.Random(f"{seed} {number}")
        if number % 8 == 0:
            for window in windows:
                window.free()
            chosen = [(rng.choice(comms), rng.choice(KINDS), rng.getrandbits(32)) for _ in range(3)]
            windows = [Window(random.Random(own), comm, kind) for comm, kind, own in chosen]
            served += sum(window.served for window in windows)
            if WORLD.bcast(time.monotonic() > end):
                break
        window = rng.choice(windows)
        if only is None or number == only:
            try:
                round_ = Round(window, rng, number)
                round_.run()
            except Exception as error:
                raise AssertionError(f"round {number}: {window.kind}, {window.comm.size} ranks") from error
            operations += round_.plan.operations
        done += 1
    for window in windows:
        window.free()
    for comm in comms[1:3]:
        comm.Free()
    return {"rounds": done, "operations": operations, "served": served}
