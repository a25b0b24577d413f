"""Scenarios of what came with PyTorch 2: functional collectives, meshes, sharded training, checkpoints, groups of several backends. Each
states what it needs of PyTorch."""

import inspect
import os
from datetime import timedelta

import torch
import torch.distributed as dist

import nearfield.torch
from tests.torch.ranks import RANK, SIZE, begin, end, scenario


def total(first: float) -> float:
    """The sum of first + rank over all ranks."""
    return SIZE * first + SIZE * (SIZE - 1) / 2


@scenario("torch.distributed._functional_collectives:all_gather_into_tensor_coalesced")
def functional() -> None:
    """Functional collectives, whose works C++ waits for."""
    from torch.distributed import _functional_collectives as functional

    begin()
    group = dist.group.WORLD
    own = torch.full((SIZE, 3), float(RANK))
    assert torch.equal(functional.all_reduce(own, "sum", group) + 0, torch.full((SIZE, 3), total(0)))
    gathered = functional.all_gather_tensor(own[:1], 0, group) + 0
    assert gathered[:, 0].tolist() == list(range(SIZE))
    scattered = functional.reduce_scatter_tensor(own, "avg", 0, group) + 0
    assert torch.allclose(scattered, torch.full((1, 3), (SIZE - 1) / 2))
    if hasattr(functional, "all_to_all_single"):
        turned = functional.all_to_all_single(own, [1] * SIZE, [1] * SIZE, group) + 0
        assert turned[:, 0].tolist() == list(range(SIZE))
    pair = functional.all_reduce_coalesced([own, own + 1], "sum", group)
    assert [int(each[0, 0] + 0) for each in pair] == [total(0), total(1)]
    pair = functional.all_gather_into_tensor_coalesced([own[:1], own[:1] + 1], group)
    assert [each[-1, 0].item() for each in pair] == [SIZE - 1, SIZE]
    end()


@scenario("torch:compile", "torch.distributed.fsdp:fully_shard")
def compiled() -> None:
    """Functional collectives in a graph."""
    from torch.distributed import _functional_collectives as functional

    begin()
    group = dist.group.WORLD

    @torch.compile(backend="aot_eager", fullgraph=True)
    def layer(states: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return functional.all_reduce(states @ weights, "sum", group) * 2

    states, weights = torch.ones(3, 8, dtype=torch.bfloat16), torch.ones(8, 8, dtype=torch.bfloat16)
    for _ in range(3):
        assert torch.equal(layer(states, weights), torch.full((3, 8), 16.0 * SIZE, dtype=torch.bfloat16))
    end()


@scenario("torch.distributed.device_mesh:init_device_mesh", "torch.distributed.tensor:DTensor")
def tensors_in_a_mesh() -> None:
    """DTensor over a mesh of one dimension and, for an even number of ranks, of two."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

    begin()
    shapes = [((SIZE,), ("all",))] + ([((SIZE // 2, 2), ("outer", "inner"))] if SIZE % 2 == 0 else [])
    for shape, names in shapes:
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
        whole = torch.arange(4.0 * SIZE).view(2 * SIZE, 2)
        sharded = distribute_tensor(whole, mesh, [Shard(0)] * len(shape))
        assert torch.equal(sharded.full_tensor(), whole)
        assert torch.equal(sharded.sum().full_tensor(), whole.sum())
        again = sharded.redistribute(mesh, [Replicate()] * len(shape))
        assert torch.equal(again.to_local(), whole)
        across = sharded.redistribute(mesh, [Shard(1), *[Replicate()] * (len(shape) - 1)])
        assert torch.equal(across.full_tensor(), whole)
        assert isinstance(sharded + sharded, DTensor)
    end()


def model() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(20, 40), torch.nn.ReLU(), torch.nn.Linear(40, 7))


def trained(module: torch.nn.Module, groups: int) -> list[torch.Tensor]:
    """Parameters after some steps, whose gradients are averages over what `groups` ranks have."""
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for step in range(4):
        optimizer.zero_grad()
        parts = range(groups) if groups > 1 else [RANK]
        for part in parts:
            data = torch.rand(5, 20, generator=torch.Generator().manual_seed(step * 100 + part))
            (module(data).square().mean() / len(parts)).backward()
        optimizer.step()
    return list(module.parameters())


@scenario("torch.distributed.fsdp:fully_shard", "torch.cpu:Stream.record_event")
def fully_sharded() -> None:
    """FSDP2: the parameters of one process that has all of the data."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    begin()
    module = model()
    mesh = init_device_mesh("cpu", (SIZE,))
    for layer in (module[0], module[2], module):
        fully_shard(layer, mesh=mesh)
    expected = list(trained(model(), SIZE)) if SIZE > 1 else None
    for ours, theirs in zip(trained(module, 1), expected or [], strict=False):
        assert torch.allclose(ours.full_tensor(), theirs, atol=1e-5)
    end()


@scenario("torch.distributed.checkpoint:save", "torch.distributed.device_mesh:init_device_mesh")
def checkpoints() -> None:
    """What one job saves it loads again: sharded and whole tensors."""
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter

    begin()
    where = os.environ["NF_TEST_STORE"] + "-checkpoint"
    state = {"whole": torch.arange(10.0), f"of {RANK}": torch.full((3,), float(RANK))}
    checkpoint.save(state, storage_writer=FileSystemWriter(where))
    read = {name: torch.zeros_like(each) for name, each in state.items()}
    checkpoint.load(read, storage_reader=FileSystemReader(where))
    assert all(torch.equal(read[name], each) for name, each in state.items())
    end()


@scenario("torch.distributed:_coalescing_manager")
def coalesced_calls() -> None:
    begin()
    tensors = [torch.full((length,), float(RANK)) for length in (1, 70, 5000)]
    with dist._coalescing_manager():
        for each in tensors:
            dist.all_reduce(each)
    assert all(torch.equal(each, torch.full_like(each, total(0))) for each in tensors)
    gathered = [torch.zeros(SIZE * 2) for _ in range(2)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for each in gathered:
            dist.all_gather_into_tensor(each, torch.full((2,), float(RANK)))
    manager.wait()
    assert all(each[-1] == SIZE - 1 for each in gathered)
    shares = [torch.zeros(4) for _ in range(2)]
    with dist._coalescing_manager():
        for each in shares:
            dist.reduce_scatter_tensor(each, torch.full((SIZE * 4,), float(RANK)))
    assert all(each[0] == total(0) for each in shares)
    # Of messages: what was issued between the two is one call.
    got, group = torch.zeros(6), dist.group.WORLD
    group._start_coalescing(torch.device("cpu"))
    dist.isend(torch.full((6,), float(RANK)), (RANK + 1) % SIZE)
    dist.irecv(got, (RANK - 1) % SIZE)
    work = group._end_coalescing(torch.device("cpu"))
    work.wait()
    assert got[0] == (RANK - 1) % SIZE and work.is_completed()
    end()


@scenario("torch.distributed:_make_nccl_premul_sum", "torch._C._distributed_c10d:Backend")
def premultiplied() -> None:
    """Sums of what each rank multiplies by a factor of its own."""
    begin()
    operator = dist._make_nccl_premul_sum(float(RANK + 1))
    value = torch.full((9,), 2.0)
    dist.all_reduce(value, operator)
    assert value.tolist() == [SIZE * (SIZE + 1.0)] * 9
    own, given = torch.zeros(3), torch.full((3 * SIZE,), 2.0)
    dist.reduce_scatter_tensor(own, given, dist._make_nccl_premul_sum(torch.tensor([RANK + 1.0])))
    assert own.tolist() == [SIZE * (SIZE + 1.0)] * 3 and given[0] == 2
    value = torch.full((2,), 2.0)
    dist.reduce(value, 1, operator)
    assert value.tolist() == [SIZE * (SIZE + 1.0) if RANK == 1 else 2.0] * 2
    end()


@scenario("torch.distributed:get_backend_config")
def names_and_timeouts() -> None:
    begin(backend="cpu:nearfield")
    assert "nearfield" in dist.get_backend() and dist.get_backend_config().split(":") == ["cpu", "nearfield"]
    group = dist.group.WORLD
    assert group._get_backend(torch.device("cpu")).name() == "nearfield"
    assert [each.type for each in group._device_types] == ["cpu"]
    if "group_desc" in inspect.signature(dist.new_group).parameters:
        part = dist.new_group([0], group_desc="the first")
        assert RANK or (part.group_desc == "the first" and part.group_name)
    group.set_timeout(timedelta(seconds=0.2))
    if RANK == 0:
        try:
            dist.recv(torch.ones(1), 1)
        except RuntimeError as error:
            assert "has waited too long" in str(error)
        else:
            raise AssertionError("there was no message")
    dist.destroy_process_group()


@scenario("torch.distributed:ProcessGroup.split_group")
def split() -> None:
    begin()
    parts = [[r for r in range(SIZE) if r % 2 == odd] for odd in (0, 1)]
    mine = parts[RANK % 2]
    half = dist.group.WORLD.split_group(mine)
    value = torch.tensor([RANK])
    half.allreduce([value]).wait()
    assert value.item() == sum(mine) and half.rank() == mine.index(RANK)
    if "torchcomms" not in inspect.getsource(
        dist.split_group
    ):  # others split groups of accelerators only (2.13)
        half = dist.split_group(split_ranks=parts)
        dist.all_reduce(value, group=half)
        assert value.item() == sum(mine) * len(mine) and dist.get_rank(half) == mine.index(RANK)
    end()


@scenario(
    "torch.distributed:ProcessGroup.split_group",
    "torch._C._distributed_c10d:_DistributedBackendOptions.process_group",
)
def several_backends() -> None:
    """A group whose tensors on CPUs are Nearfield's and whose others are another backend's."""
    for backend in ("cpu:nearfield,cuda:gloo", "cuda:gloo,cpu:nearfield"):
        begin(backend=backend)
        assert dist.get_backend_config() == backend
        group = dist.group.WORLD
        assert group._get_backend(torch.device("cpu")).name() == "nearfield"
        assert group._get_backend(torch.device("cuda")).name() == "gloo"
        for length in (1, 100_000):
            value = torch.full((length,), RANK + 1.0)
            dist.all_reduce(value)
            assert value[-1] == total(1)
            dist.all_reduce(value, dist.ReduceOp.MAX, async_op=True).wait()
        everybody = [None] * SIZE
        dist.all_gather_object(everybody, RANK)
        assert everybody == list(range(SIZE))
        got = torch.zeros(3)
        sending = dist.isend(torch.full((3,), float(RANK)), (RANK + 1) % SIZE)
        dist.recv(got, (RANK - 1) % SIZE)
        sending.wait()
        assert got[0] == (RANK - 1) % SIZE
        rows = torch.full((SIZE, 2), float(RANK))
        turned = torch.zeros_like(rows)
        dist.all_to_all_single(turned, rows)
        assert turned[:, 0].tolist() == list(range(SIZE))
        gathered = torch.zeros(SIZE * 2, 2)
        dist.all_gather_into_tensor(gathered, rows[:2])
        pair = dist.new_group([0, 1], backend="nearfield")
        if RANK < 2:
            dist.barrier(pair)
        end()
        assert not nearfield.torch.NearfieldBackend._open


@scenario("torch.distributed:gather_single")
def gathered_into_one() -> None:
    begin()
    whole = torch.zeros(2 * SIZE) if RANK == 1 else None
    dist.gather_single(torch.full((2,), float(RANK)), whole, 1)
    assert RANK != 1 or whole[::2].tolist() == list(range(SIZE))
    end()


@scenario()
def joined_and_hooked() -> None:
    """DistributedDataParallel with ranks that end early, and with hooks for its gradients."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    begin()
    for hook in (None, default_hooks.fp16_compress_hook, default_hooks.allreduce_hook):
        wrapped = torch.nn.parallel.DistributedDataParallel(model(), bucket_cap_mb=0.001)
        if hook:
            wrapped.register_comm_hook(None, hook)
        with wrapped.join() if hook is None else torch.enable_grad():
            for _ in range(3 + RANK if hook is None else 4):
                wrapped.zero_grad()
                wrapped(torch.rand(5, 20)).sum().backward()
        if hook is not None:
            first = wrapped.module[0].weight.grad.clone()
            dist.broadcast(first, 0)
            assert torch.equal(first, wrapped.module[0].weight.grad)
    end()
