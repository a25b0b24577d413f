"""Calls that have been issued: what torch.distributed returns of async calls, and the thread that completes them for futures."""

from __future__ import annotations

import contextlib
import ctypes
import queue
import threading
from collections import deque
from ctypes import byref, c_void_p
from datetime import timedelta
from typing import Any

import torch
from torch._C._distributed_c10d import Work
from torch.futures import Future

from nearfield import engine
from nearfield.torch.tensors import flat

_lib = engine.library()
_wait = _lib.nf_wait
_init = Work.__init__
# Seconds that get_future() waits itself, before a thread does.
_PATIENCE = 100e-6
# Works of a group that nobody has waited for, beyond which it looks after them itself.
_MANY = 256


class UnderWay:
    """What a group knows of its calls that are under way. They hold the group, which closes after them."""

    def _begin(self) -> None:
        # In the order of their issue, but for those that were waited for.
        self._works: deque[StartedCall] = deque()
        self._done: deque[StartedCall] = deque(maxlen=_MANY)  # of these what was done before anybody waited
        self._waiting: queue.SimpleQueue | None = None

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
        """A thread waits for the work and tells the future."""
        if self._waiting is None:
            self._waiting = queue.SimpleQueue()
            threading.Thread(
                target=_complete_all, args=(self._waiting,), daemon=True, name="nearfield"
            ).start()
        self._waiting.put((work, future))

    def _end(self) -> None:
        """Waits a second for each call that is not done. The thread ends with what it has."""
        if self._waiting is not None:
            self._waiting.put(None)
        for work in self._works:
            if work._request is not None and work._future is None:
                _wait(byref(work._request), 1.0, None)


class StartedCall(Work):
    """A call that has been issued: its request, and the tensors that it uses until it is done."""

    # Few have them, and making an object is a good part of a short call.
    _future: Future | None = None
    _failure: BaseException | None = None
    _message: engine.Message | None = None
    _waited = False  # or somebody has the future instead

    def __init__(self, group: UnderWay, request: c_void_p, tensors: Any, after: Any = None) -> None:
        _init(self)
        self._group = group
        self._request: c_void_p | None = request
        self._tensors = tensors  # of the caller: what result() gives
        self._after = after  # what is to be done once it is done, with what it needs until then
        # C++ that waits for it holds no reference to this object, without which it would wait for ever (PyTorch 1.13).
        works = group._works
        while works and works[0]._waited:
            works.popleft()
        works.append(self)
        if len(works) > _MANY:
            group._sweep()

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
        """Whether it is done, also where it has failed."""
        return self._look(0)

    def is_success(self) -> bool:
        """Whether it is done and has not failed."""
        return self._look(0) and self._failure is None

    def exception(self) -> BaseException | None:
        """What has gone wrong."""
        return self._failure

    def synchronize(self) -> None:
        """wait()."""
        self.wait()

    def result(self) -> list[torch.Tensor]:
        """The caller's tensors."""
        return flat(self._tensors)

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


class JointCall(StartedCall):
    """Several calls as one, which is done when all are."""

    def __init__(self, group: UnderWay, calls: list[StartedCall], tensors: Any) -> None:
        # A request that is NULL is done.
        super().__init__(group, c_void_p(), tensors, lambda: [each.wait() for each in calls])
        self._calls = calls

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Returns True once all are done. Raises RuntimeError for what has gone wrong."""
        self._group._done.append(self)  # C++ waits once for each tensor, and holds no reference (PyTorch 2.6)
        return super().wait(timeout)

    def _look(self, seconds: float) -> bool:
        return all([each._look(seconds) for each in self._calls]) and super()._look(0)


def _complete_all(waiting: queue.SimpleQueue) -> None:
    """The thread of a group that completes calls whose futures somebody has."""
    while (each := waiting.get()) is not None:
        work, future = each
        with contextlib.suppress(BaseException):  # the future has it
            work._complete(0)
        work._tell(future)
        del each, work, future
