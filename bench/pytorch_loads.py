"""A rank of bench/pytorch.py: loads by one backend.

RANK, WORLD_SIZE as PyTorch has them; the first argument is a JSON object: backend, store, loads, sizes, seconds. Rank 0 prints a
line of JSON for each load and size: microseconds of a call in blocks of calls.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist

import nearfield.torch  # noqa: F401 (the backend)

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
BLOCK = 10e-3  # seconds
Load = Callable[[], None]  # one call


def all_reduce(count: int) -> Load:
    tensor = torch.ones(count)
    return lambda: dist.all_reduce(tensor, dist.ReduceOp.MAX)


def broadcast(count: int) -> Load:
    tensor = torch.ones(count)
    return lambda: dist.broadcast(tensor, 0)


def all_gather(count: int) -> Load:
    own, everybody = torch.ones(count), [torch.ones(count) for _ in range(SIZE)]
    return lambda: dist.all_gather(everybody, own)


def reduce_scatter(count: int) -> Load:
    """Gloo of PyTorch before 2.0 has none: there an allreduce takes its place, as programs have to do."""
    own, everybody = torch.ones(count), torch.ones(count * SIZE)

    if dist.get_backend() == "gloo":
        return lambda: dist.all_reduce(everybody)
    return lambda: dist.reduce_scatter_tensor(own, everybody)


def all_to_all(count: int) -> Load:
    given, got = torch.ones(count * SIZE), torch.ones(count * SIZE)
    return lambda: dist.all_to_all_single(got, given)


def barrier(_: int) -> Load:
    return dist.barrier


def ddp(_: int) -> Load:
    """A step of DistributedDataParallel: the network of examples/training.py, 16 images of 32 x 32 in each rank."""
    from torch import nn

    def network() -> nn.Module:
        torch.manual_seed(1)
        layers: list[nn.Module] = []
        widths = [3, 16, 48, 96, 64, 64]
        for i, (a, b) in enumerate(zip(widths, widths[1:], strict=False)):
            layers += [nn.Conv2d(a, b, 3, padding=1), nn.ReLU()]
            if i in (0, 1, 4):
                layers.append(nn.MaxPool2d(2))
        layers += [
            nn.Flatten(),
            nn.Linear(64 * 16, 1024),
            nn.ReLU(),
            nn.Linear(1024, 1024),
            nn.ReLU(),
            nn.Linear(1024, 10),
        ]
        return nn.Sequential(*layers)

    images, labels = torch.randn(16, 3, 32, 32), torch.arange(16) % 10
    wrapped = nn.parallel.DistributedDataParallel(network(), bucket_cap_mb=1)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.01)

    def call() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(wrapped(images), labels).backward()
        optimizer.step()

    return call


def tensor_parallel(count: int) -> Load:
    """A token step of a transformer whose layers are split among the ranks: two allreduces of `count` floats in each of four layers."""
    hidden, layers = 512, 4
    rows = max(count // hidden, 1)
    part = max(hidden // SIZE, 1)
    generator = torch.Generator().manual_seed(RANK)

    def weights(a: int, b: int) -> torch.Tensor:
        return torch.randn(a, b, generator=generator) / hidden

    stack = [
        (
            weights(hidden, 3 * part),
            weights(part, hidden),
            weights(hidden, 4 * part),
            weights(4 * part, hidden),
        )
        for _ in range(layers)
    ]
    tokens = torch.randn(rows, hidden, generator=generator)

    def call() -> None:
        with torch.no_grad():
            x = tokens
            for qkv, out, up, down in stack:
                q, k, v = (x @ qkv).split(part, dim=1)
                y = torch.softmax(q @ k.t(), dim=1) @ v @ out
                dist.all_reduce(y)
                x = x + y
                y = torch.relu(x @ up) @ down
                dist.all_reduce(y)
                x = x + y

    return call


LOADS = {
    "allreduce": all_reduce,
    "bcast": broadcast,
    "allgather": all_gather,
    "reduce_scatter": reduce_scatter,
    "alltoall": all_to_all,
    "barrier": barrier,
    "ddp": ddp,
    "tensor-parallel": tensor_parallel,
}


def block(load: Load, calls: int) -> float:
    """Seconds of a call."""
    start = time.perf_counter()
    for _ in range(calls):
        load()
    return (time.perf_counter() - start) / calls


def decided(value: int) -> int:
    """Returns rank 0's value on all ranks."""
    said = torch.tensor([int(value)])
    dist.broadcast(said, 0)
    return int(said)


def measure(load: Load, seconds: float) -> list[float]:
    """Microseconds of a call in each block; at least three."""
    block(load, 5)
    calls = decided(max(int(BLOCK / block(load, 5)), 1))
    times: list[float] = []
    until = time.monotonic() + seconds
    while decided(time.monotonic() < until or len(times) < 3):
        dist.barrier()
        times.append(block(load, calls) * 1e6)
    return times


def main() -> None:
    asked = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    dist.init_process_group(
        asked["backend"], init_method=f"file://{asked['store']}", rank=RANK, world_size=SIZE
    )
    for name in asked["loads"]:
        for length in [0] if name in ("barrier", "ddp") else asked["sizes"]:
            times = measure(LOADS[name](max(length // 4, 1)), asked["seconds"])
            if RANK == 0:
                print(json.dumps({"op": name, "bytes": length, "times": times}), flush=True)
    dist.barrier()


main()
