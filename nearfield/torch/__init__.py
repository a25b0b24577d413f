"""The backend "nearfield" of torch.distributed: collectives and messages between processes of one machine, on CPU tensors.

    import nearfield.torch
    torch.distributed.init_process_group("nearfield")

docs/reference/torch.md says what is carried and how. groups.py is what torch.distributed makes of the name, calls.py what it calls of that, work.py
what calls return, tensors.py how the C API takes tensors.
"""

from __future__ import annotations

import inspect
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import Backend

from nearfield.torch.groups import (
    BACKENDS_IN_PYTHON,
    NAME,
    NearfieldBackend,
    NearfieldGroup,
    create,
    create_for,
)
from nearfield.torch.work import StartedCall

__all__ = ["NAME", "NearfieldBackend", "NearfieldGroup", "StartedCall", "monitored_barrier", "register"]


def monitored_barrier(group: Any = None, timeout: timedelta | None = None) -> None:
    """torch.distributed.monitored_barrier, which asks for gloo by name."""
    (group or torch.distributed.group.WORLD).monitored_barrier(timeout)


def register() -> None:
    """Tells torch.distributed of the backend, as importing this module does."""
    if hasattr(Backend, NAME.upper()):
        return
    known = inspect.signature(Backend.register_backend).parameters
    devices = {"devices": ["cpu"]} if "devices" in known else {}
    if BACKENDS_IN_PYTHON:
        Backend.register_backend(NAME, create_for, extended_api=True, **devices)
    else:
        Backend.register_backend(NAME, create, **devices)


register()
