"""What scenarios of one rank share: its rank, its process group, and the register of scenarios."""

import importlib
import os
from collections.abc import Callable
from datetime import timedelta

import torch.distributed as dist

import nearfield.torch  # noqa: F401 (the backend)

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
Scenario = Callable[[], None]
SCENARIOS: dict[str, tuple[Scenario, tuple[str, ...]]] = {}
_stores = 0


def begin(timeout: float = 60, backend: str = "nearfield") -> None:
    """The group of all ranks, by a store of its own."""
    global _stores
    _stores += 1
    store = f"file://{os.environ['NF_TEST_STORE']}-{_stores}"
    dist.init_process_group(
        backend, init_method=store, rank=RANK, world_size=SIZE, timeout=timedelta(seconds=timeout)
    )


def end() -> None:
    dist.barrier()
    dist.destroy_process_group()


def scenario(*needs: str) -> Callable[[Scenario], Scenario]:
    """Registers a scenario, which is for versions of PyTorch that have what it needs: modules, or things of theirs ("module:name")."""

    def register(function: Scenario) -> Scenario:
        SCENARIOS[function.__name__] = function, needs
        return function

    return register


def has(need: str) -> bool:
    module, _, name = need.partition(":")
    try:
        found = importlib.import_module(module)
    except Exception:  # some modules of 1.13 raise others under Python 3.11
        return False
    for part in filter(None, name.split(".")):
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True
