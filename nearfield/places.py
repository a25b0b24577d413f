"""Where the CPUs of this machine are, and what they have in common."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from nearfield import machine


@dataclass(frozen=True)
class Place:
    """A CPU. `core`, `cache` (last-level) and `package` are named by the lowest CPU that shares them."""

    cpu: int
    core: int
    cache: int
    package: int


# From the nearest to the farthest: what two CPUs have in common.
RELATIONS = ("core", "cache", "package", "machine")


def places_here() -> list[Place]:
    """The CPUs that this process may use. If the system does not tell caches or packages, all CPUs count as sharing one."""
    return [_place(cpu) for cpu in sorted(os.sched_getaffinity(0))]


def _place(cpu: int) -> Place:
    folder = machine.CPUS / f"cpu{cpu}"
    core = _first_of(folder / "topology" / "thread_siblings_list", cpu)
    package = _first_of(folder / "topology" / "core_siblings_list", 0)
    caches = []
    for index in sorted((folder / "cache").glob("index*")):
        if level := machine.text_of(index / "level").strip():
            caches.append((int(level), _first_of(index / "shared_cpu_list", package)))
    return Place(cpu, core, max(caches)[1] if caches else package, package)


def _first_of(path, otherwise: int) -> int:
    """The first CPU of a list such as 0-3,8."""
    digits = machine.text_of(path).strip().replace("-", ",").split(",")[0]
    return int(digits) if digits.isdecimal() else otherwise


def relation(one: Place, other: Place) -> str:
    """The first of RELATIONS that two CPUs have in common."""
    for name in RELATIONS[:-1]:
        if getattr(one, name) == getattr(other, name):
            return name
    return RELATIONS[-1]


def pairs_of(places: Sequence[Place], most: int) -> list[tuple[int, int]]:
    """Returns at most `most` pairs of CPUs: all pairs of rare relations, and evenly chosen pairs of the others."""
    of: dict[str, list[tuple[int, int]]] = {name: [] for name in RELATIONS}
    for index, one in enumerate(places):
        for other in places[index + 1 :]:
            of[relation(one, other)].append((one.cpu, other.cpu))
    left, kinds = most, sorted(filter(None, of.values()), key=len)
    chosen: list[tuple[int, int]] = []
    for index, pairs in enumerate(kinds):
        count = min(len(pairs), left // (len(kinds) - index))
        chosen += [pairs[i * len(pairs) // count] for i in range(count)]
        left -= count
    return sorted(chosen)
