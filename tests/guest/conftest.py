"""Guests that tests share: each machine boots once, when a test first asks for it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from tests.guest.guest import Guest
from tests.guest.machines import MACHINES
from tests.guest.packages import Unavailable


@pytest.fixture(scope="session")
def booted() -> Iterator[Callable[[str], Guest]]:
    """A running guest by the name of its machine; skips where there can be none."""
    guests: dict[str, Guest] = {}
    with contextlib.ExitStack() as stack:

        def boot(name: str) -> Guest:
            if name not in guests or not guests[name].alive:
                try:
                    guests[name] = stack.enter_context(Guest(MACHINES[name]))
                except Unavailable as why:
                    pytest.skip(str(why))
            return guests[name]

        yield boot


@pytest.fixture
def flat(booted: Callable[[str], Guest]) -> Guest:
    """One socket, HBM beside its DRAM."""
    return booted("flat")


@pytest.fixture
def per_socket(booted: Callable[[str], Guest]) -> Guest:
    """Two sockets, each with HBM of its own."""
    return booted("per-socket")


@pytest.fixture
def tiers(booted: Callable[[str], Guest]) -> Guest:
    """Two sockets, a little HBM beside one, much slow memory beside the other."""
    return booted("tiers")


@pytest.fixture
def cached(booted: Callable[[str], Guest]) -> Guest:
    """One node, HBM as a cache in front of it."""
    return booted("cached")
