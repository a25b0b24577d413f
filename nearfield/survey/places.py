"""Where the CPUs of this machine are, which placements of ranks a survey measures, and between which CPUs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nearfield import machine


@dataclass(frozen=True)
class Place:
    """A CPU. `core`, `cache` (the last-level one) and `package` are the lowest of the CPUs that share them."""

    cpu: int
    core: int
    cache: int
    package: int


@dataclass(frozen=True)
class Placement:
    """A name, and the CPUs that ranks may use: a rank for each, unless `ranks` says otherwise."""

    name: str
    cpus: tuple[int, ...]
    ranks: int


# From the nearest to the farthest: what two CPUs have in common.
RELATIONS = ("core", "cache", "package", "machine")


def places_here() -> list[Place]:
    """The CPUs that this process may use; what the system does not tell counts as one for all."""
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
    """The nearest that two CPUs have in common, one of RELATIONS."""
    for name in RELATIONS[:-1]:
        if getattr(one, name) == getattr(other, name):
            return name
    return RELATIONS[-1]


def placements(places: Sequence[Place], more: Sequence[int] = ()) -> list[Placement]:
    """What is measured, in the order of importance and each set of CPUs once; `more`: also so many ranks on all CPUs.

    Two ranks of each relation that there is; a rank for each core of one cache, of one package, of all; a rank for each CPU.
    One CPU has two ranks.
    """
    cores = list({place.core: place for place in reversed(places)}.values())[::-1]  # the first CPU of each
    first = cores[0]
    pairs = {relation(first, other): (first.cpu, other.cpu) for other in reversed(places) if other != first}
    named = [(f"one {name}", pairs[name]) for name in ("cache", "package", "machine") if name in pairs]
    named.append(("all cores", tuple(place.cpu for place in cores)))
    named.append(("one package", tuple(place.cpu for place in cores if place.package == first.package)))
    named.append(("one cache", tuple(place.cpu for place in cores if place.cache == first.cache)))
    named.append(("all CPUs", tuple(place.cpu for place in places)))
    named += [("one core", pairs["core"])] if "core" in pairs else []
    found: dict[tuple[int, ...], Placement] = {}
    for what, cpus in named:
        if len(cpus) > 1:
            name = f"{len(cpus)} ranks, {what}"
            found.setdefault(tuple(sorted(cpus)), Placement(name, tuple(sorted(cpus)), len(cpus)))
    every = tuple(place.cpu for place in places)
    if not found:
        found[every] = Placement("2 ranks, one CPU", every, 2)
    there = {(one.cpus, one.ranks) for one in found.values()}
    oversubscribed = [
        Placement(f"{ranks} ranks on {len(every)} CPUs", every, ranks)
        for ranks in dict.fromkeys(more)
        if (every, ranks) not in there
    ]
    return [*found.values(), *oversubscribed]


def pairs_of(places: Sequence[Place], most: int) -> list[tuple[int, int]]:
    """At most so many pairs of CPUs, spread evenly over those of each relation; rare relations keep all of theirs."""
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


def describe(places: Sequence[Place]) -> dict[str, Any]:
    """cpus (a dictionary for each), and how many cores, caches and packages these are of."""
    counts = {f"{name}s": len(Counter(getattr(place, name) for place in places)) for name in RELATIONS[:-1]}
    return {"cpus": [asdict(place) for place in places], **counts}
