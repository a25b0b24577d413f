"""Scenarios of one rank, for test_torch.py: `worker.py NAME [ARGUMENTS]`, which fails by an exception."""

import faulthandler
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import nearfield.torch
from nearfield import engine
from tests.torch import newer  # noqa: F401 (its scenarios)
from tests.torch.ranks import RANK, SCENARIOS, SIZE, begin, end, has, scenario


def same(ours: torch.Tensor, theirs: torch.Tensor, what: str) -> None:
    """Bit by bit, but for sums and products of floating point, whose operands gloo combines in another order."""
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, what
    if ours.is_floating_point() and ("reduce" in what):
        low = 1e-2 if ours.dtype == torch.float16 else 1e-5
        assert torch.allclose(ours.double(), theirs.double(), rtol=low, atol=low), what
    else:
        assert torch.equal(ours, theirs), what


# ---------------------------------------------------------------- values
DTYPES = [torch.float64, torch.float32, torch.float16, torch.int8, torch.uint8, torch.int32, torch.int64]
OPERATORS = ["SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]


class Drawn:
    """What all ranks draw alike, and tensors whose elements differ from rank to rank."""

    def __init__(self, seed: int) -> None:
        self.all = random.Random(seed)
        self.own = torch.Generator().manual_seed(seed * 1000 + RANK)

    def tensor(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        if dtype.is_floating_point:
            return (torch.rand(shape, generator=self.own) + 0.5).to(dtype)
        return torch.randint(0, 100, shape, generator=self.own).to(dtype)

    def shape(self) -> tuple[int, ...]:
        longest = self.all.choice([1, 5, 40, 300])
        return tuple(self.all.randint(1, longest) for _ in range(self.all.randint(1, 2)))

    def view(self, tensor: torch.Tensor) -> torch.Tensor:
        """The same elements with gaps, or in another order of memory, or as they are."""
        kind = self.all.randrange(4)
        if kind == 1 and tensor.dim() == 2:
            return tensor.t().clone(memory_format=torch.contiguous_format).t()
        if kind == 2:
            wide = torch.zeros((*tensor.shape, 3), dtype=tensor.dtype)
            wide[..., 1] = tensor
            return wide[..., 1]
        return tensor.clone()


def against_gloo(seed: str, rounds: str) -> None:
    """Random calls of both backends: the same values."""
    begin()
    gloo = dist.new_group(backend="gloo")
    drawn = Drawn(int(seed))
    calls = [
        allreduce,
        broadcast,
        reduce,
        allgather,
        gather,
        scatter,
        alltoall,
        alltoall_base,
        gather_base,
        coalesced,
    ]
    for number in range(int(rounds)):
        call = drawn.all.choice(calls)
        what = f"seed {seed}, round {number}: {call.__name__}"
        ours, theirs = call(drawn, None, gloo)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b, what)
    end()


def pair(drawn: Drawn, shape=None, dtype=None):
    made = drawn.tensor(shape or drawn.shape(), dtype or drawn.all.choice(DTYPES))
    return drawn.view(made), made


def finish(drawn: Drawn, call) -> None:
    if drawn.all.randrange(2):
        call(async_op=True).wait()
    else:
        call()


def allreduce(drawn, ours, gloo):
    dtype = drawn.all.choice(DTYPES)
    names = OPERATORS[:4] if dtype.is_floating_point else OPERATORS
    op = getattr(dist.ReduceOp, drawn.all.choice(names))
    a, b = pair(drawn, dtype=dtype)
    finish(drawn, lambda **k: dist.all_reduce(a, op, **k))
    dist.all_reduce(b, op, group=gloo)
    return [a], [b]


def broadcast(drawn, ours, gloo):
    a, b = pair(drawn)
    root = drawn.all.randrange(SIZE)
    finish(drawn, lambda **k: dist.broadcast(a, root, **k))
    dist.broadcast(b, root, group=gloo)
    return [a], [b]


def reduce(drawn, ours, gloo):
    a, b = pair(drawn)
    root = drawn.all.randrange(SIZE)
    finish(drawn, lambda **k: dist.reduce(a, root, dist.ReduceOp.MAX, **k))
    before = b.clone()
    dist.reduce(b, root, dist.ReduceOp.MAX, group=gloo)
    return [a], [b if root == RANK else before]  # gloo leaves parts of results in the others


def room(like: torch.Tensor) -> list[torch.Tensor]:
    return [torch.zeros_like(like, memory_format=torch.contiguous_format) for _ in range(SIZE)]


def allgather(drawn, ours, gloo):
    a, b = pair(drawn)
    got, expected = [drawn.view(each) for each in room(b)], room(b)
    finish(drawn, lambda **k: dist.all_gather(got, a, **k))
    dist.all_gather(expected, b, group=gloo)
    return got, expected


def gather_base(drawn, ours, gloo):
    a, b = pair(drawn)
    got = torch.zeros((SIZE, *b.shape), dtype=b.dtype)
    dist.all_gather_into_tensor(got.view(SIZE * b.shape[0], *b.shape[1:]), a)
    expected = room(b)
    dist.all_gather(expected, b, group=gloo)
    return [got], [torch.stack(expected)]


def gather(drawn, ours, gloo):
    a, b = pair(drawn)
    root = drawn.all.randrange(SIZE)
    got, expected = (room(b), room(b)) if root == RANK else (None, None)
    finish(drawn, lambda **k: dist.gather(a, got, root, **k))
    dist.gather(b, expected, root, group=gloo)
    return got or [], expected or []


def scatter(drawn, ours, gloo):
    shape, dtype = drawn.shape(), drawn.all.choice(DTYPES)
    root = drawn.all.randrange(SIZE)
    parts = [drawn.tensor(shape, dtype) for _ in range(SIZE)]
    a, b = torch.zeros(shape, dtype=dtype), torch.zeros(shape, dtype=dtype)
    finish(
        drawn,
        lambda **k: dist.scatter(a, [drawn.view(p) for p in parts] if root == RANK else None, root, **k),
    )
    dist.scatter(b, parts if root == RANK else None, root, group=gloo)
    if root != RANK:
        for _ in parts:
            drawn.all.randrange(4)  # what the root has drawn
    return [a], [b]


def alltoall(drawn, ours, gloo):
    """Of tensors whose lengths differ from pair to pair, which gloo does not have: by their definition."""
    dtype = drawn.all.choice(DTYPES)

    def value(source: int, target: int) -> torch.Tensor:
        length = (source * 7 + target * 3) % 5 * drawn_length
        return (torch.arange(length) % 50 + source + target).to(dtype)

    drawn_length = drawn.all.choice([1, 10, 3000])
    got = [torch.zeros_like(value(r, RANK)) for r in range(SIZE)]
    finish(drawn, lambda **k: dist.all_to_all(got, [value(RANK, r) for r in range(SIZE)], **k))
    return got, [value(r, RANK) for r in range(SIZE)]


def alltoall_base(drawn, ours, gloo):
    dtype, columns = drawn.all.choice(DTYPES), drawn.all.randint(1, 50)
    even = drawn.all.randrange(2)
    lengths = [[2 if even else (s * 3 + t) % 4 for t in range(SIZE)] for s in range(SIZE)]
    gives, gets = lengths[RANK], [row[RANK] for row in lengths]
    given = drawn.tensor((sum(gives), columns), dtype)
    a, b = (torch.zeros((sum(gets), columns), dtype=dtype) for _ in range(2))
    splits = (None, None) if even and drawn.all.randrange(2) else (gets, gives)
    finish(drawn, lambda **k: dist.all_to_all_single(a, given, *splits, **k))
    dist.all_to_all_single(b, given, gets, gives, group=gloo)
    return [a], [b]


def coalesced(drawn, ours, gloo):
    dtype = drawn.all.choice([torch.int64, torch.int32])
    shapes = [drawn.shape() for _ in range(3)]
    tensors = [drawn.tensor(shape, dtype) for shape in shapes]
    a, b = [t.clone() for t in tensors], [t.clone() for t in tensors]
    dist.all_reduce_coalesced(a)
    for each in b:
        dist.all_reduce(each, group=gloo)
    got = [[torch.zeros_like(t) for t in tensors] for _ in range(SIZE)]
    expected = [[torch.zeros_like(t) for _ in range(SIZE)] for t in tensors]
    dist.all_gather_coalesced(got, tensors)
    for parts, each in zip(expected, tensors, strict=True):
        dist.all_gather(parts, each, group=gloo)
    return a + sum(got, []), b + [parts[r] for r in range(SIZE) for parts in expected]


@scenario()
def reduce_scatter() -> None:
    """Gloo of that version has none: by its definition."""
    begin()
    for count in (1, 17, 5000):
        parts = [torch.arange(count) + RANK * 10 + r for r in range(SIZE)]
        expected = sum(torch.arange(count) + r * 10 + RANK for r in range(SIZE))
        got = torch.zeros(count, dtype=torch.int64)
        dist.reduce_scatter(got, parts)
        assert torch.equal(got, expected)
        got.zero_()
        dist.reduce_scatter_tensor(got, torch.cat(parts))
        assert torch.equal(got, expected)
    end()


@scenario()
def types() -> None:
    """Those that gloo does not have: bfloat16, bool, complex; averages; what is refused."""
    begin()
    ones = torch.full((300,), 1.0 if RANK == 0 else 2.0**-8, dtype=torch.bfloat16)
    dist.all_reduce(ones)
    exact = torch.tensor(1 + (SIZE - 1) * 2.0**-8).to(torch.bfloat16)
    assert torch.equal(ones, exact.expand(300)), (ones[0], exact)
    truth = torch.tensor([RANK == 0, True, False])
    dist.all_reduce(truth)
    assert truth.tolist() == [True, True, False]
    number = torch.tensor([complex(RANK, 1)])
    dist.all_reduce(number)
    assert number.item() == complex(SIZE * (SIZE - 1) / 2, SIZE)
    average = torch.tensor([float(RANK)] * 7)
    dist.all_reduce(average, dist.ReduceOp.AVG)
    assert torch.allclose(average, torch.full((7,), (SIZE - 1) / 2))
    mixed = torch.tensor([1, 2, 3], dtype=torch.int16)
    dist.all_reduce(mixed)
    assert mixed.tolist() == [SIZE, 2 * SIZE, 3 * SIZE]
    refused = [
        (lambda: dist.all_reduce(torch.ones(2), dist.ReduceOp.BAND), RuntimeError, "bitwise and of float32"),
        (
            lambda: dist.all_reduce(torch.ones(2, dtype=torch.int32), dist.ReduceOp.AVG),
            RuntimeError,
            "average of int32",
        ),
        (lambda: dist.all_reduce(torch.ones(2, device="meta")), ValueError, "CPU tensors"),
        (
            lambda: dist.all_gather([torch.ones(2)] * (SIZE + 1), torch.ones(2)),
            ValueError,
            f"the group has {SIZE} ranks",
        ),
        (
            lambda: dist.all_gather_into_tensor(torch.ones(1), torch.ones(2)),
            ValueError,
            f"takes {SIZE} times",
        ),
    ]
    for call, kind, text in refused:
        try:
            call()
        except kind as error:
            assert text in str(error), error
        else:
            raise AssertionError(text)
    end()


# ---------------------------------------------------------------- messages, objects, groups, futures
@scenario()
def messages() -> None:
    begin()
    right, left = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    for count in (1, 1000, 200_000):
        got = torch.zeros(count)
        sending = dist.isend(torch.full((count,), float(RANK)), right, tag=count % 7)
        receiving = dist.irecv(got, left, tag=count % 7)
        receiving.wait()
        sending.wait()
        assert got[-1] == left
        if RANK:
            dist.send(torch.full((count,), float(RANK)), 0, tag=9)
        else:
            sources = set()
            for _ in range(SIZE - 1):
                source = dist.recv(got, tag=9)
                assert got[0] == source
                sources.add(source)
            assert sources == set(range(1, SIZE))
        wide = torch.zeros(count, 2)
        operations = [
            dist.P2POp(dist.isend, torch.full((count,), float(RANK)), left),
            dist.P2POp(dist.irecv, wide[:, 1], right),
        ]
        for work in dist.batch_isend_irecv(operations):
            work.wait()
        assert wide[0, 1] == right and wide[0, 0] == 0
        dist.barrier()
    end()


@scenario()
def objects() -> None:
    begin()
    everybody = [None] * SIZE
    dist.all_gather_object(everybody, {"rank": RANK, "text": "x" * RANK})
    assert [each["rank"] for each in everybody] == list(range(SIZE))
    shared = [f"of {RANK}", RANK]
    dist.broadcast_object_list(shared, 1)
    assert shared == ["of 1", 1]
    gathered = [None] * SIZE if RANK == 0 else None
    dist.gather_object(RANK, gathered)
    assert RANK or gathered == list(range(SIZE))
    own = [None]
    dist.scatter_object_list(own, [f"for {r}" for r in range(SIZE)] if RANK == 0 else None)
    assert own == [f"for {RANK}"]
    end()


@scenario()
def groups() -> None:
    """Several at once, of the same and of other ranks; and all of it once more after they have gone."""
    for _ in range(2):
        begin()
        pairs = [dist.new_group([r, (r + 1) % SIZE]) for r in range(SIZE)]
        rest = dist.new_group(list(range(1, SIZE)))
        halves = [dist.new_group(list(range(first, SIZE, 2))) for first in (0, 1)]
        for number in range(20):
            # In another order in every rank: each group has an order of its own.
            mine = [r for r in range(SIZE) if RANK in (r, (r + 1) % SIZE)]
            random.shuffle(mine)
            works = []
            for r in mine:
                tensor = torch.full((number * 300 + 1,), RANK)
                works.append((r, tensor, dist.all_reduce(tensor, group=pairs[r], async_op=True)))
            whole = torch.tensor([RANK])
            dist.all_reduce(whole)
            assert whole.item() == SIZE * (SIZE - 1) // 2
            if RANK:
                dist.all_reduce(whole, dist.ReduceOp.MAX, group=rest)
            dist.barrier(halves[RANK % 2])
            random.shuffle(works)
            for r, tensor, work in works:
                work.wait()
                assert tensor[-1] == r + (r + 1) % SIZE
        end()


@scenario()
def futures() -> None:
    begin()
    tensor = torch.full((1000,), float(RANK))
    work = dist.all_reduce(tensor, async_op=True)
    doubled = work.get_future().then(lambda f: f.value()[0] * 2)
    assert doubled.wait()[0] == SIZE * (SIZE - 1)
    # Nobody else has come yet, so that a thread has to wait for it.
    if RANK:
        time.sleep(0.3)
    work = dist.all_reduce(tensor, async_op=True)
    future = work.get_future()
    assert RANK or not future.done()
    assert future.wait()[0] is tensor
    assert work.is_completed() and work.is_success() and work.result()[0] is tensor
    work = dist.barrier(async_op=True)
    while not work.is_completed():
        time.sleep(0.001)
    work.wait()
    # Work objects that nobody keeps: what they stand for is done all the same.
    kept = [torch.full((50_000,), float(RANK)) for _ in range(10)]
    for each in kept:
        dist.all_reduce(each, async_op=True)
    dist.barrier()
    for _ in range(20):
        dist.all_reduce(torch.ones(1))
    del each
    dist.barrier(async_op=True)
    end()


@scenario()
def many_at_once() -> None:
    """More than a group remembers (work.py: _MANY)."""
    begin()
    tensors = [torch.full((3,), float(number)) for number in range(600)]
    works = [dist.all_reduce(each, async_op=True) for each in tensors]
    for number, (tensor, work) in enumerate(zip(tensors, works, strict=True)):
        work.wait()
        assert tensor.tolist() == [number * SIZE] * 3
    end()


@scenario()
def inference() -> None:
    """Steps of workers that share a model: two groups of the same ranks, made twice; bfloat16."""
    half = torch.bfloat16
    for _ in range(2):
        begin()
        states, control = dist.new_group(), dist.new_group()
        for step in range(12):
            said = [{"step": step}] if RANK == 0 else [None]
            dist.broadcast_object_list(said, 0, group=control)
            assert said == [{"step": step}]
            for rows in (1, 8, 100):
                part = torch.full((rows, 512), RANK + 1.0, dtype=half)
                dist.all_reduce(part, group=states)
                assert torch.equal(part, torch.full_like(part, SIZE * (SIZE + 1) / 2))
            own = torch.full((64,), float(RANK), dtype=half)
            everybody = torch.zeros(SIZE * 64, dtype=half)
            dist.all_gather_into_tensor(everybody, own, group=states)
            assert everybody[::64].tolist() == list(range(SIZE))
            dist.reduce_scatter_tensor(own, everybody, group=states)
            assert own.tolist() == [RANK * SIZE] * 64
            logits = [torch.zeros(64, dtype=half) for _ in range(SIZE)] if RANK == 0 else None
            dist.gather(own, logits, 0, group=states)
            assert RANK or [int(each[0]) for each in logits] == [r * SIZE for r in range(SIZE)]
        end()


# ---------------------------------------------------------------- training
def network(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    layers = [torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.BatchNorm1d(128), torch.nn.Linear(128, 10)]
    return torch.nn.Sequential(*layers)


@scenario()
def ddp() -> None:
    """DistributedDataParallel: the same parameters as with gloo, in all ranks."""
    begin()
    gloo = dist.new_group(backend="gloo")
    trained = []
    for group in (None, gloo):
        wrapped = torch.nn.parallel.DistributedDataParallel(
            network(RANK), process_group=group, bucket_cap_mb=0.02
        )
        optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1)
        generator = torch.Generator().manual_seed(RANK)
        for _ in range(5):
            optimizer.zero_grad()
            out = wrapped(torch.randn(16, 64, generator=generator))
            torch.nn.functional.cross_entropy(out, torch.arange(16) % 10).backward()
            optimizer.step()
        trained.append([p.detach().clone() for p in wrapped.parameters()])
    for a, b in zip(*trained, strict=True):
        assert torch.allclose(a, b, atol=1e-6), (a - b).abs().max()
        other = a.clone()
        dist.broadcast(other, 0)
        assert torch.equal(a, other)
    end()


class Numbers(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((100,), float(index))


@scenario()
def loaders() -> None:
    """Data loaders fork while calls are under way."""
    begin()
    for _ in range(2):
        work = dist.all_reduce(torch.ones(100_000), async_op=True)
        total = torch.zeros(1)
        for batch in torch.utils.data.DataLoader(Numbers(), batch_size=8, num_workers=2):
            total += batch.sum()
            dist.all_reduce(torch.ones(5))
        work.wait()
        dist.all_reduce(total)
        assert total.item() == SIZE * 100 * 64 * 63 / 2
    end()


def mapped(heap: str) -> None:
    """With Nearfield's heap, peers work straight on tensors (NEARFIELD_ALGORITHM asks for that); without it they do not."""
    begin()
    tensor, group, library = torch.ones(1 << 20), dist.group.WORLD._group, engine.library()
    at = tensor.data_ptr()
    for _ in range(5):
        engine.check(library.nf_allreduce(group, at, at, tensor.numel(), engine.FLOAT32, engine.SUM, None))
        carried = library.nf_last_algorithm().decode()
        assert (carried == "direct") == (heap == "shared"), carried
    assert tensor[-1] == SIZE**5
    end()


# ---------------------------------------------------------------- faults
def dies() -> None:
    """Rank 1 is killed: the others' next calls fail, and name it."""
    begin()
    dist.all_reduce(torch.ones(10))
    if RANK == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        for _ in range(3):
            dist.all_reduce(torch.ones(1000))
    except RuntimeError as error:
        print(error)
        return
    raise AssertionError("nobody has noticed")


def dies_inside() -> None:
    """Rank 1 is killed during all-reduces: the others have an error, and no file of shared memory is left."""
    begin()
    if RANK == 1:
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
    until = time.monotonic() + 20
    tensor = torch.ones(32 << 10, dtype=torch.bfloat16)
    try:
        while time.monotonic() < until:
            dist.all_reduce(tensor)
    except RuntimeError as error:
        assert "/dev/shm" not in Path("/proc/self/maps").read_text()
        print(error)
        return
    raise AssertionError("nobody has noticed")


def lengths(how: str) -> None:
    """Rank 1 has more than the others: all have an error, if not in this call then in the next one, that says who has how much."""
    begin()
    size = 8 if RANK == 1 else 4
    calls = {
        "all_reduce": lambda: dist.all_reduce(torch.ones(size)),
        "broadcast": lambda: dist.broadcast(torch.ones(size), 0),
        "reduce": lambda: dist.reduce(torch.ones(size), 0),
        "all_gather_into_tensor": lambda: dist._all_gather_base(torch.ones(size * SIZE), torch.ones(size)),
    }
    try:
        calls[how]()
        for _ in range(3):
            dist.barrier()
    except RuntimeError as error:
        assert all(each in str(error) for each in ("rank 1 has 32 bytes", "16 bytes")), error
        return
    raise AssertionError("nobody has noticed")


def lists() -> None:
    """Lists of another length than the group's, or of other tensors than the rank's own, are refused."""
    begin()
    own = torch.ones(4)

    def refused(call: Callable[[], Any]) -> bool:
        try:
            call()
        except (ValueError, RuntimeError):
            return True
        return False

    for wrong in ([torch.zeros(4)] * (SIZE - 1), [torch.zeros(5)] * SIZE):
        assert refused(lambda wrong=wrong: dist.all_gather(wrong, own))
        if RANK == 0:
            assert refused(lambda wrong=wrong: dist.gather(own, wrong, 0))
            assert refused(lambda wrong=wrong: dist.scatter(own, wrong, 0))
    dist.barrier()


def compares() -> None:
    """As PyTorch is asked to compare the ranks' calls, nearfield does."""
    begin()
    assert os.environ["NEARFIELD_CHECK"] == "1"


def late(how: str) -> None:
    """Rank 1 comes after the time is over: the others fail, and name it."""
    begin(timeout=1)
    dist.barrier()
    if RANK == 1:
        time.sleep(2.5)
        return
    start = time.monotonic()
    try:
        if how == "collective":
            dist.all_reduce(torch.ones(10))
        elif how == "future":
            dist.all_reduce(torch.ones(10), async_op=True).get_future().wait()
        elif how == "monitored":
            nearfield.torch.monitored_barrier(timeout=timedelta(seconds=0.5))
        else:
            dist.recv(torch.ones(10), 1)
    except RuntimeError as error:
        print(error)
        assert time.monotonic() - start < 2
        time.sleep(0.5)
        return
    raise AssertionError("nobody has noticed")


def interrupted(how: str) -> None:
    begin()
    dist.barrier()
    if RANK == 0:
        time.sleep(2)
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where tests run in the background
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    try:
        dist.barrier() if how == "collective" else dist.recv(torch.ones(1), 0)
    except KeyboardInterrupt:
        print("interrupted")
        return
    raise AssertionError("it was not interrupted")


def several_nodes() -> None:
    try:
        begin()
    except RuntimeError as error:
        print(error)
        return
    raise AssertionError("a group over several nodes")


def alone() -> None:
    reduce_scatter()
    types()


def scenarios() -> None:
    """All that this version of PyTorch has what they need for."""
    missing = {name: [need for need in needs if not has(need)] for name, (_, needs) in SCENARIOS.items()}
    for name, (function, _) in SCENARIOS.items():
        if not missing[name]:
            print(f"{name} ...", flush=True)
            function()
    print(*(f"{name} was not run, without {absent}" for name, absent in missing.items() if absent), sep="\n")


if __name__ == "__main__":
    faulthandler.dump_traceback_later(float(os.environ.get("NF_TEST_TRACE", "100")))
    of_one = {name: function for name, (function, _) in SCENARIOS.items()}
    (globals() | of_one)[sys.argv[1]](*sys.argv[2:])
