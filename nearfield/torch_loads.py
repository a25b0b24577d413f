"""A rank of `nearfield bench --torch` (torch_bench.py): loads that run by both backends in turns, in one process.

RANK, WORLD_SIZE as PyTorch has them; the first argument is a JSON object: store, loads, sizes, seconds. Rank 0 prints a line of
JSON for each load and size: microseconds of blocks of calls.
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
Groups = dict[str, object]
Load = Callable[[object], None]  # one call in a group


def all_reduce(count: int) -> Load:
    tensor = torch.ones(count)
    return lambda group: dist.all_reduce(tensor, dist.ReduceOp.MAX, group=group)


def broadcast(count: int) -> Load:
    tensor = torch.ones(count)
    return lambda group: dist.broadcast(tensor, 0, group=group)


def all_gather(count: int) -> Load:
    own, everybody = torch.ones(count), [torch.ones(count) for _ in range(SIZE)]
    return lambda group: dist.all_gather(everybody, own, group=group)


def reduce_scatter(count: int) -> Load:
    """Gloo of PyTorch before 2.0 has none: there an allreduce takes its place, as programs have to do."""
    own, everybody = torch.ones(count), torch.ones(count * SIZE)

    def call(group: object) -> None:
        if dist.get_backend(group) == "gloo":
            dist.all_reduce(everybody, group=group)
        else:
            dist.reduce_scatter_tensor(own, everybody, group=group)

    return call


def all_to_all(count: int) -> Load:
    given, got = torch.ones(count * SIZE), torch.ones(count * SIZE)
    return lambda group: dist.all_to_all_single(got, given, group=group)


def barrier(_: int) -> Load:
    return lambda group: dist.barrier(group)


def ddp(_: int) -> Load:
    """A step of DistributedDataParallel: the network of examples/training.py, 16 images of 32 x 32 in each rank."""
    from torch import nn

    def network() -> nn.Module:
        torch.manual_seed(1)
        layers: list[nn.Module] = []
        widths = [3, 16, 48, 96, 64, 64]
        for i, (a, b) in enumerate(zip(widths, widths[1:])):
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
    models: dict[object, tuple[nn.Module, torch.optim.Optimizer]] = {}

    def call(group: object) -> None:
        if group not in models:
            wrapped = nn.parallel.DistributedDataParallel(network(), process_group=group, bucket_cap_mb=1)
            models[group] = wrapped, torch.optim.SGD(wrapped.parameters(), lr=0.01)
        wrapped, optimizer = models[group]
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

    def call(group: object) -> None:
        with torch.no_grad():
            x = tokens
            for qkv, out, up, down in stack:
                q, k, v = (x @ qkv).split(part, dim=1)
                y = torch.softmax(q @ k.t(), dim=1) @ v @ out
                dist.all_reduce(y, group=group)
                x = x + y
                y = torch.relu(x @ up) @ down
                dist.all_reduce(y, group=group)
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


def block(load: Load, group: object, calls: int) -> float:
    """Seconds of a call."""
    start = time.perf_counter()
    for _ in range(calls):
        load(group)
    return (time.perf_counter() - start) / calls


def measure(load: Load, groups: Groups, seconds: float) -> dict[str, list[float]]:
    """Microseconds of a call in blocks of each group, in turns. Rank 0 decides how many."""
    agreed = groups["gloo"]

    def decided(value: int) -> int:
        said = torch.tensor([int(value)])
        dist.broadcast(said, 0, group=agreed)
        return int(said)

    calls = {}
    for name, group in groups.items():
        block(load, group, 3)
        calls[name] = decided(max(int(BLOCK / block(load, group, 5)), 1))
    times: dict[str, list[float]] = {name: [] for name in groups}
    until = time.monotonic() + seconds
    while decided(time.monotonic() < until or len(times["gloo"]) < 3):
        for name, group in groups.items():
            dist.barrier(group)
            times[name].append(block(load, group, calls[name]) * 1e6)
    return times


def main() -> None:
    asked = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    dist.init_process_group("nearfield", init_method=f"file://{asked['store']}", rank=RANK, world_size=SIZE)
    groups = {"nearfield": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    for name in asked["loads"]:
        for length in [0] if name in ("barrier", "ddp") else asked["sizes"]:
            times = measure(LOADS[name](max(length // 4, 1)), groups, asked["seconds"])
            if RANK == 0:
                print(json.dumps({"op": name, "bytes": length, "ranks": SIZE, "times": times}), flush=True)
    dist.barrier()


if __name__ == "__main__":
    main()
