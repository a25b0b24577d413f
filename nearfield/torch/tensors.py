"""Tensors, types and operators of PyTorch as the C API takes them: addresses, bytes and numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from nearfield import engine

Tensors = Sequence[torch.Tensor]

TYPES = {
    torch.int8: engine.INT8,
    torch.int16: engine.INT16,
    torch.int32: engine.INT32,
    torch.int64: engine.INT64,
    torch.uint8: engine.UINT8,
    torch.float16: engine.FLOAT16,
    torch.bfloat16: engine.BFLOAT16,
    torch.float32: engine.FLOAT32,
    torch.float64: engine.FLOAT64,
    torch.complex64: engine.COMPLEX64,
    torch.complex128: engine.COMPLEX128,
    torch.bool: engine.BOOL,
}
TYPES |= {
    getattr(torch, name): number  # PyTorch 2.3 and later
    for name, number in (("uint16", engine.UINT16), ("uint32", engine.UINT32), ("uint64", engine.UINT64))
    if hasattr(torch, name)
}
_PREMULTIPLIED_SUM = 8


def type_of(tensor: torch.Tensor) -> int:
    """The C API's type. Raises TypeError for types without reductions."""
    try:
        return TYPES[tensor.dtype]
    except KeyError:
        known = ", ".join(str(each) for each in TYPES)
        raise TypeError(f"nearfield cannot reduce {tensor.dtype}; it reduces {known}") from None


def operand(dense: torch.Tensor, options: Any) -> tuple[torch.Tensor, int]:
    """The tensor to reduce and the C API's operator, which has the number of PyTorch's. `options`: an options object, a ReduceOp, or
    None for the sum. A premultiplied sum is the sum of a copy that has been multiplied.
    """
    if options is None:
        return dense, engine.SUM
    operator = getattr(options, "reduceOp", options)
    code = hash(operator)
    if code != _PREMULTIPLIED_SUM:
        return dense, code
    state = operator.__getstate__()
    if state is None:
        raise ValueError(
            "nearfield needs PyTorch 2 for PREMUL_SUM, because Python cannot read its factor in earlier versions; "
            "multiply the tensor first"
        )
    return (dense * state[1]).to(dense.dtype), engine.SUM


def dense_of(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or a copy without gaps. Raises ValueError for what is not in this machine's memory."""
    if not tensor.is_cpu or tensor.is_sparse:
        raise ValueError(
            f"nearfield serves dense CPU tensors, not {tensor.layout} on {tensor.device}; "
            "for others use another backend, such as nccl"
        )
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def only(tensors: Tensors | torch.Tensor) -> torch.Tensor:
    """The tensor of a list of one. Raises ValueError for longer lists."""
    if isinstance(tensors, torch.Tensor):
        return tensors
    if len(tensors) != 1:
        raise ValueError(f"nearfield takes one tensor from each rank, not {len(tensors)}")
    return tensors[0]


def bytes_of(tensor: torch.Tensor) -> int:
    """The length in bytes."""
    return tensor.numel() * tensor.element_size()


def back(to: torch.Tensor, dense: torch.Tensor) -> Callable[[], Any] | None:
    """What brings a result to a tensor with gaps; None where it is there."""
    return None if to is dense else lambda: to.copy_(dense)


def flat(tensors: Any) -> list[torch.Tensor]:
    """The tensors of lists of lists, in one list."""
    if isinstance(tensors, torch.Tensor):
        return [tensors]
    return [each for part in tensors for each in flat(part)]
