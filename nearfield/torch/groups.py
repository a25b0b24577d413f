"""What torch.distributed makes of "nearfield": a process group, or one backend of a group that has others for other devices."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
from torch._C import _distributed_c10d as c10d
from torch._C._distributed_c10d import PrefixStore, ProcessGroup

from nearfield import engine
from nearfield.torch.calls import Calls

NAME = "nearfield"
_lib = engine.library()
_CPU = torch.device("cpu")
_Backend = getattr(c10d, "Backend", object)  # PyTorch 2 and later
# Whether a class of Python can be a backend of a group, as in versions that tell creators which group they are asked for.
BACKENDS_IN_PYTHON = hasattr(c10d._DistributedBackendOptions, "process_group")


class _Member(Calls):
    """A rank of a group, from joining to closing."""

    def _join(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        self._begin()
        self._rank, self._size = rank, size
        if os.environ.get("TORCH_DISTRIBUTED_DEBUG", "").upper() == "DETAIL":
            os.environ.setdefault("NEARFIELD_CHECK", "1")  # as PyTorch does then
        self._sequence = 0
        self._look_at_signals = engine.be_interruptible()
        try:
            self._group = engine.join(rank, size, _exchange_by(store, rank, size))
        except engine.Failure as failure:
            if failure.status != engine.UNAVAILABLE:
                raise
            raise RuntimeError(
                f"{failure}. The backend nearfield is for ranks of one machine: use the backend gloo for this group"
            ) from None
        self.set_timeout(timeout)

    def _close(self) -> None:
        group, self._group = getattr(self, "_group", 0), 0
        if group:
            self._end()
            _lib.nf_close(group)

    def __del__(self) -> None:
        self._close()

    def set_timeout(self, timeout: timedelta) -> None:
        """How long calls wait for other ranks from now on."""
        engine.check(_lib.nf_set_timeout(self._group, max(timeout.total_seconds(), 0)))

    _set_default_timeout = set_timeout

    def name(self) -> str:
        """The name of the backend."""
        return NAME

    getBackendName = name  # noqa: N815 (the name of the C++ class's function)
    _get_backend_name = name

    def rank(self) -> int:
        """The rank in this group."""
        return self._rank

    def size(self) -> int:
        """The number of ranks."""
        return self._size

    def _set_sequence_number_for_group(self) -> None:
        self._sequence = 0

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence


class NearfieldGroup(_Member, ProcessGroup):
    """A process group. All ranks call the same functions in the same order, as torch.distributed asks."""

    supports_splitting = True

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        ProcessGroup.__init__(self, rank, size)
        self._name = self._description = ""
        self._store = store
        self._join(store, rank, size, timeout)
        self._backend: NearfieldBackend | None = None
        if BACKENDS_IN_PYTHON:
            # For what C++ asks backends for. Python calls the group itself, which is a shorter way.
            self._backend = NearfieldBackend.of(self)
            self._set_default_backend(ProcessGroup.BackendType.CUSTOM)
            self._register_backend(_CPU, ProcessGroup.BackendType.CUSTOM, self._backend)

    # ProcessGroup asks its backends for these, of which it has none in most versions.
    def _set_group_name(self, name: str) -> None:
        self._name = name
        if BACKENDS_IN_PYTHON:
            super()._set_group_name(name)

    def _set_group_desc(self, description: str) -> None:
        self._description = description
        if BACKENDS_IN_PYTHON:
            super()._set_group_desc(description)

    @property
    def group_name(self) -> str:
        """What torch.distributed calls the group."""
        return self._name

    @property
    def group_desc(self) -> str:
        """What the user calls the group."""
        return self._description

    def getGroupName(self) -> str:  # noqa: N802 (the name of the C++ class's function)
        """What torch.distributed calls the group."""
        return self._name

    def getGroupDesc(self) -> str:  # noqa: N802 (the name of the C++ class's function)
        """What the user calls the group."""
        return self._description

    @property
    def _device_types(self) -> list[torch.device]:
        return [_CPU]

    def _get_backend(self, device: torch.device) -> NearfieldGroup | NearfieldBackend:
        """Itself, or what stands for it. Raises RuntimeError for devices whose tensors it does not carry."""
        if torch.device(device).type != "cpu":
            raise RuntimeError(f"the backend nearfield is for CPU tensors, not for {device}")
        return self._backend or self

    def get_group_store(self) -> Any:
        """The store by which the ranks have met."""
        return self._store

    def split_group(
        self,
        ranks: Sequence[int],
        timeout: timedelta | None = None,
        opts: Any = None,
        group_name: str | None = None,
        group_desc: str | None = None,
        device_types: Any = None,
    ) -> NearfieldGroup | None:
        """A group of some of the ranks, all of which call this; None in others."""
        if self._rank not in ranks:
            return None
        name = group_name or f"split/{'-'.join(map(str, ranks))}"
        store = PrefixStore(f"{name}/", self._store)
        part = NearfieldGroup(store, list(ranks).index(self._rank), len(ranks), timeout or timedelta())
        part._set_group_name(name)
        part._set_group_desc(group_desc or "")
        return part


class NearfieldBackend(_Member, _Backend):
    """The backend of CPU tensors in a process group that has others for other devices. Needs a version of PyTorch whose Backend can be
    a base class of Python."""

    # Those of groups that have not been destroyed, as C++ holds no reference to this object.
    _open: set[NearfieldBackend] = set()
    supports_splitting = True

    @classmethod
    def of(cls, group: NearfieldGroup) -> NearfieldBackend:
        """Makes calls of a group that closes it itself."""
        made = cls.__new__(cls)
        _Backend.__init__(made, group._rank, group._size)
        made._begin()
        made._rank, made._size, made._group, made._sequence = group._rank, group._size, group._group, 0
        made._close = lambda: None
        return made

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        _Backend.__init__(self, rank, size)
        self._join(store, rank, size, timeout)
        self._open.add(self)

    def shutdown(self) -> None:
        """Lets go of it, as destroy_process_group() asks."""
        self._open.discard(self)

    abort = shutdown


def _exchange_by(store: Any, rank: int, size: int) -> Callable[[bytes], list[bytes]]:
    """The exchange of bytes by PyTorch's store; a later group with the same store and prefix meets by other keys."""
    meeting = store.add(f"nearfield/{rank}", 1)
    round_ = 0

    def exchange(mine: bytes) -> list[bytes]:
        nonlocal round_
        round_ += 1
        key = f"nearfield/{meeting}/{round_}"
        store.set(f"{key}/{rank}", mine)
        return [mine if r == rank else store.get(f"{key}/{r}") for r in range(size)]

    return exchange


def create(store: Any, rank: int, size: int, timeout: timedelta) -> NearfieldGroup:
    """What torch.distributed calls for a group of the backend "nearfield"."""
    return NearfieldGroup(store, rank, size, timeout)


def create_for(asked: Any, _options: Any) -> NearfieldGroup | NearfieldBackend:
    """What later versions call. They say which group it is for, which has other backends if it is not named after the default."""
    whole = asked.process_group
    others = whole is not None and (whole.name() != "custom" or whole._device_types)
    kind = NearfieldBackend if others else NearfieldGroup
    return kind(asked.store, asked.group_rank, asked.group_size, asked.timeout)
