"""Collectives and messages by the C API, under the names that torch.distributed calls of a process group.

Calls issue what they do and return it; `wait()` of that completes it. Where PyTorch says that it would wait at once (asyncOp of later
versions), the short ones are done when they return, and return None.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_void_p
from datetime import timedelta
from typing import Any

import torch
from torch._C._distributed_c10d import BarrierOptions

from nearfield import engine
from nearfield.torch.tensors import Tensors, back, bytes_of, dense_of, only, operand, type_of
from nearfield.torch.work import JointCall, StartedCall, UnderWay

_lib = engine.library()
_barrier, _allreduce, _broadcast, _wait = _lib.nf_barrier, _lib.nf_allreduce, _lib.nf_broadcast, _lib.nf_wait
_SAYS_WHETHER_IT_WAITS = hasattr(BarrierOptions(), "asyncOp")


def _waits(options: Any) -> bool:
    return _SAYS_WHETHER_IT_WAITS and not getattr(options, "asyncOp", True)


def _complete(request: c_void_p, seconds: float = 0.0) -> None:
    status = _wait(byref(request), seconds, None)
    if status:
        engine.check(status)


class Calls(UnderWay):
    """The calls of rank `_rank` of `_size` in `_group`, a group of the C API."""

    _rank: int
    _size: int
    _group: int

    # ---------------------------------------------------------------- reductions
    def allreduce(
        self, tensors: Tensors | torch.Tensor, opts: Any = None, op: Any = None
    ) -> StartedCall | None:
        tensor = only(tensors)
        dense, operator = operand(dense_of(tensor), opts if op is None else op)
        at = dense.data_ptr()
        # Ranks may call with and without async_op, as DistributedDataParallel's join() does: a call of either kind is started.
        request = c_void_p()
        status = _allreduce(self._group, at, at, dense.numel(), type_of(dense), operator, byref(request))
        if status:
            engine.check(status)
        if dense is tensor and _waits(opts):
            return _complete(request)
        return StartedCall(self, request, tensor, back(tensor, dense))

    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> StartedCall:
        if len({each.dtype for each in tensors}) != 1:
            raise ValueError("the tensors of one coalesced call must have one type")
        whole = torch.cat([dense_of(each).reshape(-1) for each in tensors])
        parts = whole.split([each.numel() for each in tensors])
        work = self.allreduce([whole], None, getattr(opts, "reduceOp", None))
        work._after = lambda: [to.copy_(part.view_as(to)) for to, part in zip(tensors, parts)]
        return JointCall(self, [work], list(tensors))

    def reduce(self, tensors: Tensors, opts: Any) -> StartedCall:
        tensor = only(tensors)
        # Other ranks keep what they have: in place only the root's is a result.
        dense, operator = operand(dense_of(tensor), opts)
        at, count, root = dense.data_ptr(), dense.numel(), opts.rootRank
        to = at if root == self._rank else None
        request = c_void_p()
        engine.check(
            _lib.nf_reduce(self._group, at, to, count, type_of(dense), operator, root, byref(request))
        )
        return StartedCall(self, request, tensor, back(tensor, dense) if to else lambda: dense)

    def reduce_scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any = None) -> StartedCall:
        output, blocks = only(outputs), inputs[0]
        if len(blocks) != self._size or any(each.numel() != output.numel() for each in blocks):
            raise ValueError(
                f"reduce_scatter takes {self._size} blocks of {output.numel()} elements, as many as the output has"
            )
        return self.reduce_scatter_single(
            output, torch.cat([dense_of(each).reshape(-1) for each in blocks]), opts
        )

    def reduce_scatter_single(
        self, output: torch.Tensor, input: torch.Tensor, opts: Any = None
    ) -> StartedCall:
        self._expect_blocks("input", input, "output", output)
        to = dense_of(output)
        given, operator = operand(dense_of(input), opts)
        at, count, request = given.data_ptr(), to.numel(), c_void_p()
        engine.check(
            _lib.nf_reduce_scatter(
                self._group, at, to.data_ptr(), count, type_of(to), operator, byref(request)
            )
        )
        return self._started(request, output, to, given)

    def reduce_scatter_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Any = None
    ) -> StartedCall:
        self._expect_pairs(outputs, inputs)
        calls = [self.reduce_scatter_single(to, given, opts) for to, given in zip(outputs, inputs)]
        return JointCall(self, calls, outputs)

    # ---------------------------------------------------------------- movement
    def broadcast(
        self, tensors: Tensors | torch.Tensor, opts: Any = None, root: int = 0
    ) -> StartedCall | None:
        tensor = only(tensors)
        dense, root = dense_of(tensor), getattr(opts, "rootRank", root)
        at, length = dense.data_ptr(), bytes_of(dense)
        request = c_void_p()
        status = _broadcast(self._group, at, length, engine.BYTE, root, byref(request))
        if status:
            engine.check(status)
        if dense is tensor and _waits(opts):
            return _complete(request)
        return StartedCall(self, request, tensor, back(tensor, dense))

    def allgather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> StartedCall:
        given = only(inputs)
        self._expect_list("output list of all_gather", only(outputs), given)
        return self._exchange([given] * self._size, list(outputs[0]), outputs)

    def allgather_coalesced(
        self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None
    ) -> StartedCall:
        if len(outputs) != self._size:
            raise ValueError(
                f"all_gather takes {self._size} lists of tensors, one of each rank, not {len(outputs)}"
            )
        for tensors in outputs:
            if [(each.numel(), each.dtype) for each in tensors] != [
                (each.numel(), each.dtype) for each in inputs
            ]:
                raise ValueError("the outputs of all_gather must have the lengths and types of the inputs")
        whole = torch.cat([dense_of(each).reshape(-1) for each in inputs])
        came = whole.new_empty((self._size, whole.numel()))
        work = self.all_gather_single(came, whole)

        def share_out(_given: torch.Tensor = whole) -> None:  # which has to stay until it has gone out
            for tensors, row in zip(outputs, came):
                for to, part in zip(tensors, row.split([each.numel() for each in tensors])):
                    to.copy_(part.view_as(to))

        work._tensors, work._after = outputs, share_out
        return work

    def all_gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> StartedCall:
        self._expect_blocks("output", output, "input", input)
        to, given = dense_of(output), dense_of(input)
        at, length, request = given.data_ptr(), bytes_of(given), c_void_p()
        engine.check(_lib.nf_allgather(self._group, at, to.data_ptr(), length, engine.BYTE, byref(request)))
        return self._started(request, output, to, given)

    def all_gather_single_coalesced(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> StartedCall:
        self._expect_pairs(outputs, inputs)
        calls = [self.all_gather_single(to, given) for to, given in zip(outputs, inputs)]
        return JointCall(self, calls, outputs)

    def gather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any) -> StartedCall:
        own, root = only(inputs), opts.rootRank
        if root == self._rank:
            self._expect_list("output list of gather", only(outputs), own)
        elif any(outputs):
            raise ValueError("only the root of a gather has a list of outputs")
        sends = [own if r == root else None for r in range(self._size)]
        receives = list(outputs[0]) if root == self._rank else [None] * self._size
        return self._exchange(sends, receives, outputs)

    def gather_single(self, output: torch.Tensor, input: torch.Tensor, opts: Any) -> StartedCall:
        if opts.rootRank != self._rank:
            return self.gather([], [input], opts)
        self._expect_blocks("output", output, "input", input)
        to = dense_of(output)
        work = self.gather([to.view(self._size, -1).unbind()], [input], opts)
        after, bring = work._after, back(output, to)
        work._tensors, work._after = output, lambda: (after(), bring and bring())
        return work

    def scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any) -> StartedCall:
        own, root = only(outputs), opts.rootRank
        if root == self._rank:
            self._expect_list("input list of scatter", only(inputs), own)
        elif any(inputs):
            raise ValueError("only the root of a scatter has a list of inputs")
        sends = list(inputs[0]) if root == self._rank else [None] * self._size
        return self._exchange(sends, [own if r == root else None for r in range(self._size)], own)

    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> StartedCall:
        return self._exchange(list(inputs), list(outputs), outputs)

    def all_to_all_single(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_splits: Sequence[int],
        input_splits: Sequence[int],
        opts: Any = None,
    ) -> StartedCall:
        if output_splits or input_splits:
            return self._exchange(
                list(input.split(list(input_splits) or self._equally(input))),
                list(output.split(list(output_splits) or self._equally(output))),
                output,
            )
        self._equally(input)
        self._expect_blocks("output", output, "input", input, 1)
        to, given = dense_of(output), dense_of(input)
        at, length, request = given.data_ptr(), bytes_of(given) // self._size, c_void_p()
        engine.check(_lib.nf_alltoall(self._group, at, to.data_ptr(), length, engine.BYTE, byref(request)))
        return self._started(request, output, to, given)

    # Their names in earlier versions.
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    gather_into_tensor = gather_single
    alltoall_base = all_to_all_single

    def _started(
        self, request: c_void_p, output: torch.Tensor, to: torch.Tensor, given: torch.Tensor
    ) -> StartedCall:
        """A call that brings `given`, which stays until then, to `to`, which may stand for `output`."""
        bring = back(output, to)
        return StartedCall(self, request, output, lambda: (given, bring and bring()))

    def _equally(self, tensor: torch.Tensor) -> int:
        if tensor.size(0) % self._size:
            raise ValueError(
                f"a first dimension of {tensor.size(0)} does not split equally among {self._size} ranks"
            )
        return tensor.size(0) // self._size

    def _expect_blocks(
        self, whole: str, many: torch.Tensor, part: str, one: torch.Tensor, times: int = 0
    ) -> None:
        times = times or self._size
        if many.numel() != times * one.numel() or many.dtype != one.dtype:
            raise ValueError(
                f"the {whole} has {many.numel()} elements of {many.dtype}; it takes {times} times the "
                f"{part}'s {one.numel()}, of {one.dtype}"
            )

    def _expect_pairs(self, outputs: Tensors, inputs: Tensors) -> None:
        if len(outputs) != len(inputs):
            raise ValueError(f"there are {len(outputs)} outputs for {len(inputs)} inputs")

    def _expect_list(self, what: str, tensors: Tensors, like: torch.Tensor) -> None:
        if len(tensors) != self._size:
            raise ValueError(f"the {what} has {len(tensors)} tensors; the group has {self._size} ranks")
        for rank, each in enumerate(tensors):
            if each.numel() != like.numel() or each.dtype != like.dtype:
                raise ValueError(
                    f"tensor {rank} of the {what} has {each.numel()} elements of {each.dtype}; this rank's own "
                    f"has {like.numel()} of {like.dtype}"
                )

    def _exchange(
        self,
        sends: list[torch.Tensor | None],
        receives: list[torch.Tensor | None],
        results: Any,
    ) -> StartedCall:
        """A tensor to each and from each, None for none, straight from where they are to where they belong."""
        if len(sends) != self._size or len(receives) != self._size:
            raise ValueError(
                f"there are {self._size} ranks, and {len(sends)} tensors to and {len(receives)} from them"
            )
        given = [None if each is None else dense_of(each) for each in sends]
        room = [None if each is None else dense_of(each) for each in receives]
        numbers = ctypes.c_size_t * self._size
        lengths = [
            numbers(*(0 if each is None else bytes_of(each) for each in side)) for side in (given, room)
        ]
        places = [
            numbers(*(0 if each is None else each.data_ptr() for each in side)) for side in (given, room)
        ]
        request = c_void_p()
        status = _lib.nf_alltoallv(
            self._group, None, lengths[0], places[0], None, lengths[1], places[1], byref(request)
        )
        if status:
            engine.check(status)
        moved = [(to, dense) for to, dense in zip(receives, room) if to is not dense]
        return StartedCall(
            self, request, results, lambda: (given, room, [to.copy_(dense) for to, dense in moved])
        )

    # ---------------------------------------------------------------- messages
    def send(self, tensors: Tensors, dst: int, tag: int = 0) -> StartedCall:
        tensor = only(tensors)
        dense, request = dense_of(tensor), c_void_p()
        engine.check(_lib.nf_send(self._group, dense.data_ptr(), bytes_of(dense), dst, tag, byref(request)))
        return StartedCall(self, request, tensor, None if dense is tensor else lambda: dense)

    def recv(self, tensors: Tensors, src: int, tag: int = 0) -> StartedCall:
        tensor = only(tensors)
        dense, request = dense_of(tensor), c_void_p()
        at, room = dense.data_ptr(), bytes_of(dense)
        engine.check(_lib.nf_receive(self._group, at, room, src, tag, None, byref(request)))
        work = StartedCall(self, request, tensor, back(tensor, dense))
        work._message = engine.Message()
        return work

    def recv_anysource(self, tensors: Tensors, tag: int = 0) -> StartedCall:
        return self.recv(tensors, engine.ANY, tag)

    recvAnysource = recv_anysource  # noqa: N815 (the name of the C++ class's function)

    # ---------------------------------------------------------------- barriers
    def barrier(self, opts: Any = None) -> StartedCall | None:
        request = c_void_p()
        status = _barrier(self._group, byref(request))
        if status:
            engine.check(status)
        if _waits(opts):
            return _complete(request, max(opts.timeout.total_seconds(), 0.0))
        return StartedCall(self, request, ())

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Raises RuntimeError in all ranks that wait too long; it names all that have not come."""
        self.barrier().wait(timeout)

    # ---------------------------------------------------------------- several calls as one
    def _start_coalescing(self, device: Any = None) -> None:
        self._last_before = self._works[-1] if self._works else None

    def _end_coalescing(self, device: Any = None) -> StartedCall:
        """What has been issued since _start_coalescing(), as one call."""
        calls: list[StartedCall] = []
        for work in reversed(self._works):
            if work is self._last_before:
                break
            calls.insert(0, work)
        return JointCall(self, calls, [work._tensors for work in calls])

    # What Backend's are called.
    start_coalescing, end_coalescing = _start_coalescing, _end_coalescing
    supports_coalescing = True
