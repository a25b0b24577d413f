"""Whether runs of one command printed the same, when lines of ranks come in any order and some numbers are times.

Lines with the same text around their numbers are compared; the n-th number of such lines is a column. Padding does not
count. Columns that are times, by the words around them, are not compared, nor are columns that change between plain runs.
If a line has such a column, its other columns may be measured, too: they are not compared if their numbers have a
decimal point and so few digits that repeated measurements may agree by chance. All other numbers and texts have to be
the same, in any order of lines. Numbers with a decimal point may differ in last digits, as sums in another order do.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
BLANKS = re.compile(r"[ \t]+")
MARK = "\0"
UNIT = re.compile(
    r"[\s\])]*(?:[num]?s|secs?|(?:milli|micro|nano)?seconds?|minutes?|mins?|hours?|hrs?|[kmgt]?i?(?:b|bytes|bits?)(?:/s(?:ec)?|ps)"
    r"|[kmgt]?flops?(?:/s(?:ec)?)?|(?:/|per )(?:s|sec|second|hour|day))(?![a-z])"
)
TIMES = re.compile(
    r"(?:times?|timing|elapsed|wall|wallclock|took|duration|seconds|date|speed|bandwidth|latency|[kmgt]?flops)"
    r"(?:\s*[\[(][a-z/ ]+[\])])?[^a-z]*$"
)
MOST = 5  # lines that are shown
SHORT = 3  # significant digits that measurements repeat by chance
CLOSE = Decimal("1e-9")  # relative difference of sums in another order
LONG = 6  # significant digits from which on the last one may differ for that reason

Columns = tuple[str, ...]


@dataclass
class Sameness:
    """The result of comparing the output of a run with those of plain runs."""

    same: bool
    exact: bool = False  # to the last byte
    left_out: list[str] = field(default_factory=list)  # lines of the plain run in which numbers were
    missing: list[str] = field(default_factory=list)  # lines that only the plain run has
    added: list[str] = field(default_factory=list)  # and only the other one
    rounded: list[str] = field(default_factory=list)  # lines of the other run that differ in last digits


def compare_outputs(plain: Sequence[str], other: str, sums: bool = True) -> Sameness:
    """Compares a run with plain runs, at least one. `sums`: last digits may differ, since sums may be in another order."""
    if other in plain:
        return Sameness(True, exact=True)
    runs = [_by_text(text) for text in plain]
    ours = _by_text(other)
    result = Sameness(True)
    for text in dict.fromkeys([*runs[0], *ours]):
        before = [run.get(text, []) for run in runs]
        now = ours.get(text, [])
        columns = [n for n in range(text.count(MARK)) if not _is_time(text, n)]
        kept = [n for n in columns if not _varies(before, n)]
        if len(kept) < len(columns):
            kept = [n for n in kept if not _may_repeat(before, n)]
        reduced = [Counter(_keep(line, kept) for line in lines) for lines in before]
        if any(
            one != reduced[0] for one in reduced
        ):  # there are more of them, or other pairs, in one plain run
            if Counter(now) not in map(Counter, before):
                result.left_out.append(_line(text, (before[0] or now or before[-1] or [()])[0]))
            continue
        counted = Counter(_keep(line, kept) for line in now)
        if Counter(now) != Counter(before[0]) and counted == reduced[0]:
            result.left_out.append(_line(text, before[0][0]))
        gone, come = reduced[0] - counted, counted - reduced[0]
        if sums and _close(gone, come):
            result.rounded += _only(text, now, kept, come)
            continue
        result.missing += _only(text, before[0], kept, gone)
        result.added += _only(text, now, kept, come)
    result.same = not (result.missing or result.added)
    return result


def _by_text(output: str) -> dict[str, list[Columns]]:
    """Groups lines by their text without numbers; each line is the tuple of its numbers."""
    found: dict[str, list[Columns]] = defaultdict(list)
    for line in output.splitlines():
        text = NUMBER.sub(f" {MARK} ", line.replace(MARK, " "))
        found[BLANKS.sub(" ", text).strip()].append(tuple(NUMBER.findall(line)))
    return found


def _is_time(text: str, column: int) -> bool:
    parts = text.lower().split(MARK)
    return bool(UNIT.match(parts[column + 1]) or TIMES.search(parts[column]))


def _varies(runs: list[list[Columns]], column: int) -> bool:
    """Whether plain runs differ in the numbers of a column."""
    values = [sorted(line[column] for line in lines) for lines in runs]
    return any(one != values[0] for one in values)


def _digits(number: str) -> int:
    """Significant digits of a number with a decimal point; 0: it has none."""
    mantissa = re.split("[eE]", number)[0]
    return len(mantissa.lstrip("+-0.").replace(".", "")) or 1 if "." in mantissa else 0


def _may_repeat(runs: list[list[Columns]], column: int) -> bool:
    """Whether all numbers of a column have a decimal point and at most SHORT digits."""
    return all(0 < _digits(line[column]) <= SHORT for lines in runs for line in lines)


def _close(plain: Counter[Columns], other: Counter[Columns]) -> bool:
    """Whether there are different lines, and they differ only in the last digits of numbers with a decimal point."""
    pairs = list(zip(sorted(plain.elements(), key=_values), sorted(other.elements(), key=_values)))
    same_number = len(pairs) == sum(plain.values()) == sum(other.values())
    return (
        bool(pairs)
        and same_number
        and all(map(_near, *zip(*[pair for each in pairs for pair in zip(*each)])))
    )


def _values(line: Columns) -> list[float]:
    return [float(number) for number in line]


def _near(one: str, other: str) -> bool:
    if one == other:
        return True
    digits = min(_digits(one), _digits(other))
    if not digits:
        return False
    a, b = Decimal(one), Decimal(other)
    coarser = max(number.as_tuple().exponent for number in (a, b))
    last = Decimal(1).scaleb(coarser) if digits >= LONG else Decimal(0)
    return abs(a - b) <= max(CLOSE * max(abs(a), abs(b)), last)


def _keep(line: Columns, kept: list[int]) -> Columns:
    return tuple(line[n] for n in kept)


def _only(text: str, lines: list[Columns], kept: list[int], wanted: Counter[Columns]) -> list[str]:
    """The lines whose compared columns are in the counter `wanted`."""
    found = []
    for line in lines:
        if wanted[_keep(line, kept)] > 0:
            wanted[_keep(line, kept)] -= 1
            found.append(_line(text, line))
    return found


def _line(text: str, numbers: Columns) -> str:
    parts = text.split(MARK)
    return "".join(part + number for part, number in zip(parts, [*numbers, *[""] * len(parts)]))
