"""The backend "nearfield" of torch.distributed: collectives and messages between processes of one machine, on CPU tensors.

    import nearfield.torch
    torch.distributed.init_process_group("nearfield")

docs/torch.md says what is carried and how. Calls issue what they do and return; `wait()` of what they return completes it.
"""

from __future__ import annotations

import contextlib
import ctypes
import inspect
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from ctypes import byref, c_void_p
from datetime import timedelta
from typing import Any

import torch
from torch._C._distributed_c10d import ProcessGroup, Work
from torch.distributed import Backend
from torch.futures import Future

from nearfield import engine

NAME = "nearfield"
Tensors = Sequence[torch.Tensor]

_lib = engine.library()
_wait, _barrier, _allreduce, _broadcast = _lib.nf_wait, _lib.nf_barrier, _lib.nf_allreduce, _lib.nf_broadcast
_TYPES = {
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
_PREMULTIPLIED_SUM = 8
# Seconds that get_future() waits itself, before a thread does.
_PATIENCE = 100e-6
# Works of a group that nobody has waited for, beyond which it looks after them itself.
_MANY = 256


def _type_of(tensor: torch.Tensor) -> int:
    try:
        return _TYPES[tensor.dtype]
    except KeyError:
        known = ", ".join(str(each) for each in _TYPES)
        raise TypeError(f"nearfield reduces no {tensor.dtype}; it reduces {known}") from None


def _operator(options: Any) -> int:
    """Of an options object, of a ReduceOp, or none, which is the sum. Operators have the numbers of the C API."""
    code = hash(getattr(options, "reduceOp", options)) if options is not None else engine.SUM
    if code == _PREMULTIPLIED_SUM:
        raise ValueError(
            "nearfield has no premultiplied sum, whose factor Python cannot read; multiply before"
        )
    return code


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or a copy without gaps. Raises ValueError for what is not in this machine's memory."""
    if not tensor.is_cpu or tensor.is_sparse:
        raise ValueError(
            f"nearfield carries dense CPU tensors, not {tensor.layout} on {tensor.device}; "
            "for others use another backend, such as nccl"
        )
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def _only(tensors: Tensors | torch.Tensor) -> torch.Tensor:
    if isinstance(tensors, torch.Tensor):
        return tensors
    if len(tensors) != 1:
        raise ValueError(f"nearfield takes one tensor of a rank, not {len(tensors)}")
    return tensors[0]


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _back(to: torch.Tensor, dense: torch.Tensor) -> Callable[[], Any] | None:
    """What brings a result to a tensor with gaps; none where it is there."""
    return None if to is dense else lambda: to.copy_(dense)


class StartedCall(Work):
    """A call that has been issued: its request, and the tensors that it uses until it is done."""

    # Few have them, and making an object is a good part of a short call.
    _future: Future | None = None
    _failure: BaseException | None = None
    _message: engine.Message | None = None
    _waited = False  # or somebody has the future instead

    def __init__(self, group: NearfieldGroup, request: c_void_p, tensors: Any, after: Any = None) -> None:
        Work.__init__(self)
        # C++ that waits for it holds no reference to this object, without which it would wait for ever (PyTorch 1.13).
        works = group._works
        while works and works[0]._waited:
            works.popleft()
        works.append(self)
        if len(works) > _MANY:
            group._sweep()
        self._group = group
        self._request: c_void_p | None = request
        self._tensors = tensors  # of the caller: what result() gives
        self._after = after  # what is to be done once it is done, with what it needs until then

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Returns True once it is done. Raises RuntimeError for what has gone wrong, which names ranks that are missing."""
        works = self._group._works
        if works and works[-1] is self:
            works.pop()
        self._waited = True
        if self._request is None:
            if self._failure:
                raise self._failure
        elif self._future is not None:
            self._future.wait()
        else:
            self._complete(timeout.total_seconds() if timeout else 0.0)
        return True

    def _complete(self, seconds: float) -> None:
        message = self._message
        status = _wait(byref(self._request), seconds if seconds > 0 else 0.0, message and byref(message))
        self._request = None
        if status or self._after is not None:
            self._end(status)

    def _end(self, status: int) -> None:
        self._request = None
        after, self._after = self._after, None
        try:
            engine.check(status)
            if after is not None:
                after()
        except BaseException as failure:
            self._failure = failure
            raise

    def _look(self, seconds: float) -> bool:
        """Whether it is done, also where it has failed."""
        if self._request is None:
            return True
        if self._future is not None:
            return self._future.done()
        done = ctypes.c_int()
        message = self._message
        status = _lib.nf_test(byref(self._request), seconds, byref(done), message and byref(message))
        if status or done.value:
            with contextlib.suppress(RuntimeError):  # wait() and exception() have it
                self._end(status)
        return self._request is None

    def is_completed(self) -> bool:
        return self._look(0)

    def is_success(self) -> bool:
        return self._look(0) and self._failure is None

    def exception(self) -> BaseException | None:
        return self._failure

    def synchronize(self) -> None:
        self.wait()

    def result(self) -> list[torch.Tensor]:
        return _flat(self._tensors)

    def get_future(self) -> Future:
        """A future of the tensors. Where that is not there soon, a thread of the group waits for it."""
        if self._future is None:
            future: Future = Future()
            if self._look(_PATIENCE):
                self._tell(future)
            else:
                self._group._wait_beside(self, future)
            self._future, self._waited = future, True
        return self._future

    def _tell(self, future: Future) -> None:
        if self._failure is None:
            future.set_result(self.result())
        else:
            future.set_exception(self._failure)

    def _source_rank(self) -> int:
        return -1 if self._message is None else self._message.source

    source_rank = _source_rank


def _flat(tensors: Any) -> list[torch.Tensor]:
    if isinstance(tensors, torch.Tensor):
        return [tensors]
    return [each for part in tensors for each in _flat(part)]


class NearfieldGroup(ProcessGroup):
    """A process group. All ranks call the same functions in the same order, as torch.distributed asks."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._rank, self._size = rank, size
        self._works: deque[StartedCall] = (
            deque()
        )  # in the order of their issue, but for those that were waited for
        self._done: deque[StartedCall] = deque(maxlen=_MANY)  # of these what was done before anybody waited
        self._waiting: queue.SimpleQueue | None = None
        self._sequence = 0
        self._group = 0
        self._look = engine.be_interruptible()
        try:
            self._group = engine.join(rank, size, _exchange_by(store, rank, size))
        except engine.Failure as failure:
            if failure.status != engine.UNAVAILABLE:
                raise
            raise RuntimeError(
                f"{failure}. The backend nearfield is for ranks of one machine: use the backend gloo for this group"
            ) from None
        engine.check(_lib.nf_set_timeout(self._group, max(timeout.total_seconds(), 0)))

    # ---------------------------------------------------------------- what PyTorch asks of a group
    def name(self) -> str:
        return NAME

    def getBackendName(self) -> str:  # noqa: N802 (the name of the C++ class's function)
        return NAME

    _get_backend_name = getBackendName

    def rank(self) -> int:
        return self._rank

    def size(self) -> int:
        return self._size

    def _set_sequence_number_for_group(self) -> None:
        self._sequence = 0

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence

    def __del__(self) -> None:
        if getattr(self, "_waiting", None) is not None:
            self._waiting.put(None)
        if getattr(self, "_group", 0):
            for work in self._works:
                if work._request is not None and work._future is None:
                    _wait(byref(work._request), 1.0, None)
            _lib.nf_close(self._group)

    # ---------------------------------------------------------------- calls under way
    def _sweep(self) -> None:
        """Works that nobody waits for end here, and let go of their tensors."""
        for _ in range(len(self._works)):
            work = self._works.popleft()
            if work._waited:
                continue
            if work._request is not None and not work._look(0):
                self._works.append(work)
                continue
            work._tensors = ()
            self._done.append(work)

    def _wait_beside(self, work: StartedCall, future: Future) -> None:
        if self._waiting is None:
            self._waiting = queue.SimpleQueue()
            threading.Thread(target=_complete_all, args=(self._waiting,), daemon=True, name=NAME).start()
        self._waiting.put((work, future))

    # ---------------------------------------------------------------- reductions
    def allreduce(self, tensors: Tensors | torch.Tensor, opts: Any = None, op: Any = None) -> StartedCall:
        tensor = _only(tensors)
        dense, operator = _dense(tensor), _operator(opts if op is None else op)
        request, at = c_void_p(), dense.data_ptr()
        status = _allreduce(self._group, at, at, dense.numel(), _type_of(dense), operator, byref(request))
        if status:
            engine.check(status)
        return StartedCall(self, request, tensor, _back(tensor, dense))

    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> StartedCall:
        if len({each.dtype for each in tensors}) != 1:
            raise ValueError("the tensors of one coalesced call have one type")
        flat = torch.cat([_dense(each).reshape(-1) for each in tensors])
        parts = flat.split([each.numel() for each in tensors])
        work = self.allreduce([flat], opts)
        work._tensors = list(tensors)
        work._after = lambda: [to.copy_(part.view_as(to)) for to, part in zip(tensors, parts)]
        return work

    def reduce(self, tensors: Tensors, opts: Any) -> StartedCall:
        tensor = _only(tensors)
        # Other ranks keep what they have: in place only the root's is a result.
        dense = _dense(tensor)
        request, at = c_void_p(), dense.data_ptr()
        to = at if opts.rootRank == self._rank else None
        engine.check(
            _lib.nf_reduce(
                self._group,
                at,
                to,
                dense.numel(),
                _type_of(dense),
                _operator(opts),
                opts.rootRank,
                byref(request),
            )
        )
        return StartedCall(self, request, tensor, _back(tensor, dense) if to else lambda: dense)

    def reduce_scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any = None) -> StartedCall:
        output, blocks = _only(outputs), inputs[0]
        if len(blocks) != self._size or any(each.numel() != output.numel() for each in blocks):
            raise ValueError(
                f"reduce_scatter takes {self._size} blocks of {output.numel()} elements, the output's"
            )
        return self._reduce_scatter_base(
            output, torch.cat([_dense(each).reshape(-1) for each in blocks]), opts
        )

    def _reduce_scatter_base(
        self, output: torch.Tensor, input: torch.Tensor, opts: Any = None
    ) -> StartedCall:
        self._expect_blocks("input", input, "output", output)
        to, given = _dense(output), _dense(input)
        request = c_void_p()
        engine.check(
            _lib.nf_reduce_scatter(
                self._group,
                given.data_ptr(),
                to.data_ptr(),
                to.numel(),
                _type_of(to),
                _operator(opts),
                byref(request),
            )
        )
        return self._started(request, output, to, given)

    # ---------------------------------------------------------------- movement
    def broadcast(self, tensors: Tensors | torch.Tensor, opts: Any = None, root: int = 0) -> StartedCall:
        tensor = _only(tensors)
        dense, root = _dense(tensor), getattr(opts, "rootRank", root)
        request = c_void_p()
        status = _broadcast(self._group, dense.data_ptr(), _bytes(dense), engine.BYTE, root, byref(request))
        if status:
            engine.check(status)
        return StartedCall(self, request, tensor, _back(tensor, dense))

    def allgather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> StartedCall:
        return self._exchange([_only(inputs)] * self._size, list(outputs[0]), outputs)

    def allgather_coalesced(
        self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None
    ) -> StartedCall:
        flat = torch.cat([_dense(each).reshape(-1) for each in inputs])
        came = flat.new_empty((self._size, flat.numel()))
        work = self._allgather_base(came, flat)

        def share_out(_given: torch.Tensor = flat) -> None:  # which has to stay until it has gone out
            for tensors, row in zip(outputs, came):
                for to, part in zip(tensors, row.split([each.numel() for each in tensors])):
                    to.copy_(part.view_as(to))

        work._tensors, work._after = outputs, share_out
        return work

    def _allgather_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> StartedCall:
        self._expect_blocks("output", output, "input", input)
        to, given = _dense(output), _dense(input)
        request = c_void_p()
        engine.check(
            _lib.nf_allgather(
                self._group, given.data_ptr(), to.data_ptr(), _bytes(given), engine.BYTE, byref(request)
            )
        )
        return self._started(request, output, to, given)

    def gather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any) -> StartedCall:
        own, root = _only(inputs), opts.rootRank
        sends = [own if r == root else None for r in range(self._size)]
        receives = list(outputs[0]) if root == self._rank else [None] * self._size
        return self._exchange(sends, receives, outputs)

    def scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any) -> StartedCall:
        own, root = _only(outputs), opts.rootRank
        sends = list(inputs[0]) if root == self._rank else [None] * self._size
        return self._exchange(sends, [own if r == root else None for r in range(self._size)], own)

    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> StartedCall:
        return self._exchange(list(inputs), list(outputs), outputs)

    def alltoall_base(
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
        to, given = _dense(output), _dense(input)
        request = c_void_p()
        engine.check(
            _lib.nf_alltoall(
                self._group,
                given.data_ptr(),
                to.data_ptr(),
                _bytes(given) // self._size,
                engine.BYTE,
                byref(request),
            )
        )
        return self._started(request, output, to, given)

    def _started(
        self, request: c_void_p, output: torch.Tensor, to: torch.Tensor, given: torch.Tensor
    ) -> StartedCall:
        """A call that brings `given`, which stays until then, to `to`, which may stand for `output`."""
        back = _back(output, to)
        return StartedCall(self, request, output, lambda: (given, back and back()))

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
        given = [None if each is None else _dense(each) for each in sends]
        room = [None if each is None else _dense(each) for each in receives]
        numbers = ctypes.c_size_t * self._size
        lengths = [numbers(*(0 if each is None else _bytes(each) for each in side)) for side in (given, room)]
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
        tensor = _only(tensors)
        dense, request = _dense(tensor), c_void_p()
        engine.check(_lib.nf_send(self._group, dense.data_ptr(), _bytes(dense), dst, tag, byref(request)))
        return StartedCall(self, request, tensor, None if dense is tensor else lambda: dense)

    def recv(self, tensors: Tensors, src: int, tag: int = 0) -> StartedCall:
        tensor = _only(tensors)
        dense, request = _dense(tensor), c_void_p()
        engine.check(
            _lib.nf_receive(self._group, dense.data_ptr(), _bytes(dense), src, tag, None, byref(request))
        )
        work = StartedCall(self, request, tensor, _back(tensor, dense))
        work._message = engine.Message()
        return work

    def recv_anysource(self, tensors: Tensors, tag: int = 0) -> StartedCall:
        return self.recv(tensors, engine.ANY, tag)

    recvAnysource = recv_anysource  # noqa: N815 (the name of the C++ class's function)

    # ---------------------------------------------------------------- barriers
    def barrier(self, opts: Any = None) -> StartedCall:
        request = c_void_p()
        status = _barrier(self._group, byref(request))
        if status:
            engine.check(status)
        return StartedCall(self, request, ())

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Raises RuntimeError in all ranks that wait too long; it names all that have not come."""
        self.barrier().wait(timeout)


def monitored_barrier(group: Any = None, timeout: timedelta | None = None) -> None:
    """torch.distributed.monitored_barrier, which asks for gloo by name."""
    (group or torch.distributed.group.WORLD).monitored_barrier(timeout)


def _complete_all(waiting: queue.SimpleQueue) -> None:
    """The thread of a group that completes calls whose futures somebody has."""
    while (each := waiting.get()) is not None:
        work, future = each
        with contextlib.suppress(BaseException):  # the future has it
            work._complete(0)
        work._tell(future)
        del each, work, future


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


if not hasattr(Backend, NAME.upper()):
    devices = (
        {"devices": ["cpu"]} if "devices" in inspect.signature(Backend.register_backend).parameters else {}
    )
    Backend.register_backend(NAME, create, **devices)
