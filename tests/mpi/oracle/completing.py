"""The ways in which programs complete requests."""

from __future__ import annotations

import os
from collections.abc import Callable

from mpi4py import MPI


def one_by_one(requests: list[MPI.Request]) -> None:
    """Waits for each."""
    for request in requests:
        request.Wait()


def any_first(requests: list[MPI.Request]) -> None:
    """Waits for whichever is first, until none is left."""
    while MPI.Request.Waitany(requests) != MPI.UNDEFINED:
        pass


def some_first(requests: list[MPI.Request]) -> None:
    """Waits for whichever are first, until none is left."""
    while MPI.Request.Waitsome(requests) is not None:
        pass


def tested(requests: list[MPI.Request]) -> None:
    """Tests each in turn."""
    while requests:
        requests = [request for request in requests if not request.Test()]
        os.sched_yield()


def tested_together(requests: list[MPI.Request]) -> None:
    """Tests all at once."""
    while not MPI.Request.Testall(requests):
        os.sched_yield()


def tested_for_any(requests: list[MPI.Request]) -> None:
    """Tests for any, until none is left."""
    while True:
        at, done = MPI.Request.Testany(requests)
        if done and at == MPI.UNDEFINED:
            return
        os.sched_yield()


def asked_first(requests: list[MPI.Request]) -> None:
    """Asks for each whether it is complete before it is waited for."""
    for request in requests:
        while not request.Get_status():
            os.sched_yield()
        request.Wait()


WAYS: list[Callable[[list[MPI.Request]], object]] = [
    MPI.Request.Waitall,
    one_by_one,
    any_first,
    some_first,
    tested,
    tested_together,
    tested_for_any,
    asked_first,
]
