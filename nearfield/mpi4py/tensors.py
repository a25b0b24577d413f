"""Tensors in pickles: their memory is a buffer, as arrays' is. PyTorch's own way is a file inside of the pickle."""

from __future__ import annotations

import copyreg
import io
from collections.abc import Callable
from pickle import PickleBuffer, Pickler
from typing import Any


def dumps_tensors(obj: Any, protocol: int, buffer_callback: Callable[[PickleBuffer], bool]) -> bytes:
    """pickle.dumps for who has imported PyTorch. Before version 2.0 tensors are pickled PyTorch's way."""
    import torch

    file = io.BytesIO()
    pickler = Pickler(file, protocol, buffer_callback=buffer_callback)
    if hasattr(torch.Tensor, "untyped_storage"):
        storages = {torch.UntypedStorage: _reduce_untyped, torch.storage.TypedStorage: _reduce_typed}
        pickler.dispatch_table = {**copyreg.dispatch_table, **storages}
    pickler.dump(obj)
    return file.getvalue()


def _reduce_typed(storage: Any) -> tuple:
    if storage._untyped_storage.device.type != "cpu":
        return storage.__reduce__()
    return _typed, (storage._untyped_storage, storage.dtype)


def _typed(storage: Any, dtype: Any) -> Any:
    import torch

    return torch.storage.TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


def _reduce_untyped(storage: Any) -> tuple:
    import torch

    if storage.device.type != "cpu":
        return storage.__reduce__()
    return _untyped, (PickleBuffer(torch.empty(0, dtype=torch.uint8).set_(storage).numpy()),)


def _untyped(memory: Any) -> Any:
    import torch

    return (
        torch.frombuffer(memory, dtype=torch.uint8).untyped_storage()
        if len(memory)
        else torch.UntypedStorage(0)
    )
