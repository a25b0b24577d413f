"""`nearfield bench --scan`: all powers of two and the sizes beside them, and cells that stand out among these.

If a call takes longer than a shorter *and* a longer one, an algorithm reaches its limit there, a ring is too short, or a
wrong algorithm has been chosen. Powers of two alone do not show this if all sizes of a class of lengths are slow.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nearfield.operations import WITH_ELEMENTS
from nearfield.summary import GROUP, heading, microseconds, time_of
from nearfield.tables import print_columns

Row = dict[str, Any]
SLOWER = 1.2  # times as long as both neighbours
WIDEST = 8  # cells between these, two powers of two


Measured = list[tuple[list[str], list[int]]]  # operations, and the sizes at which these are measured


def as_given(operations: list[str], sizes: list[int]) -> Measured:
    """All operations at these sizes."""
    return [(operations, sizes)]


def scanned(operations: list[str], sizes: list[int]) -> Measured:
    """All operations at these sizes and, between the first and the last of them, at those just below and above each power of
    two and halfway to the next one. Operations on elements of 8 bytes get multiples of 8."""
    whole = [op for op in operations if op in WITH_ELEMENTS]
    others = [op for op in operations if op not in WITH_ELEMENTS]
    groups = [(others, sizes_around(sizes, 1)), (whole, sizes_around(sizes, 8))]
    return [(group, of_group) for group, of_group in groups if group and of_group]


def sizes_around(sizes: Iterable[int], step: int) -> list[int]:
    """The sizes, and multiples of `step` between them: one step below and above each power of two, and halfway to the next."""
    first, *_, last = sorted((*sizes, *sizes))
    powers = [1 << k for k in range(last.bit_length())]
    beside = {size for power in powers for size in (power - step, power, power + step, power + power // 2)}
    return sorted({*sizes, *(size for size in beside if first <= size <= last and size % step == 0)})


@dataclass(frozen=True)
class Bump:
    """Neighbouring cells of one curve that are slower than the cell before them and the cell after them."""

    before: Row
    inside: tuple[Row, ...]
    after: Row

    @property
    def beside(self) -> float:
        """Microseconds of the slower neighbour."""
        return max(time_of(self.before), time_of(self.after))

    @property
    def times(self) -> float:
        """The time of the slowest cell inside, divided by that of the slower neighbour."""
        return max(map(time_of, self.inside)) / self.beside

    def stands_out(self) -> bool:
        """Whether each cell takes more than SLOWER times as long as both neighbours, with quartiles that do not overlap."""
        apart = min(row["lower"] for row in self.inside) > max(self.before["upper"], self.after["upper"])
        return apart and min(map(time_of, self.inside)) > SLOWER * self.beside


def bumps_of(curve: Iterable[Row]) -> list[Bump]:
    """Returns the bumps of rows that differ by size alone, in the order of sizes. If bumps overlap, the widest one counts."""
    rows = sorted(curve, key=lambda row: row["bytes"])
    found: list[Bump] = []
    taken: set[int] = set()
    for width in range(WIDEST, 0, -1):
        for first in range(1, len(rows) - width):
            bump = Bump(rows[first - 1], tuple(rows[first : first + width]), rows[first + width])
            places = range(first, first + width)
            if taken.isdisjoint(places) and bump.stands_out():
                found.append(bump)
                taken.update(places)
    return sorted(found, key=lambda bump: bump.inside[0]["bytes"])


def bumps(rows: Iterable[Row]) -> list[Bump]:
    """Returns the bumps of all curves of Nearfield, operation by operation."""
    curves: dict[tuple, list[Row]] = {}
    for row in rows:
        if row["mode"] == "nearfield":
            curves.setdefault(tuple(row.get(key) for key in (*GROUP, "host")), []).append(row)
    return list(itertools.chain.from_iterable(map(bumps_of, curves.values())))


def show_bumps(rows: list[Row]) -> None:
    """Prints what stands out: sizes, microseconds there and on both sides, and the algorithms."""
    found = bumps(rows)
    if not found:
        print(f"\nNo cell takes more than {SLOWER} times as long as both of its neighbours.")
        return
    print(f"\nMore than {SLOWER} times as long as both neighbours:")
    for about, group in itertools.groupby(found, lambda bump: _about(bump.inside[0])):
        print(f"\n{about}")
        lines = [_words(bump) for bump in group]
        titles = ["bytes", "us", "before", "us", "after", "us", "times", "algorithm", "before", "after"]
        print_columns(titles, lines, ["red"] * len(lines))


def _about(row: Row) -> str:
    return f"{heading(dict(zip(GROUP, map(row.get, GROUP))), [])}, {row['host']}"


def _words(bump: Bump) -> list[str]:
    inside = bump.inside
    sizes = [inside[0]["bytes"], inside[-1]["bytes"]]
    slowest = max(inside, key=time_of)
    return [
        "-".join(map(str, dict.fromkeys(sizes))),
        microseconds(time_of(slowest)),
        *(str(bump.before["bytes"]), microseconds(time_of(bump.before))),
        *(str(bump.after["bytes"]), microseconds(time_of(bump.after))),
        f"{bump.times:.2f}",
        "/".join(dict.fromkeys(row["algorithm"] for row in inside)),
        *(bump.before["algorithm"], bump.after["algorithm"]),
    ]
