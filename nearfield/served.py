"""`nearfield stats`: sums up the statistics of many jobs, for example of a run of continuous integration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from nearfield.statistics import Statistics

MOST = 5  # reasons and operations that are named


def summarize(ranks: Sequence[Statistics]) -> list[str]:
    """Lines on the ranks of any number of jobs; there is one at least."""
    jobs = sum(one.rank == 0 for one in ranks)
    calls: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for one in ranks:
        for name, operation in one.operations.items():
            calls[name] += operation.carried
            seconds[name] += operation.seconds
            reasons.update({f"{name}: {why}": count for why, count in operation.why.items()})
        if to_the_host := one.counts["messages_to_the_host"]:
            reasons["messages"] += int(to_the_host)
    carried = sum(operation.bytes for one in ranks for operation in one.operations.values())
    large = sum(int(one.counts["messages_large_bytes"]) for one in ranks)
    lines = [
        f"{_counted(jobs, 'job')}, {_counted(len(ranks), 'rank')}, {max(one.size for one in ranks)} in one job at most.",
        f"By shared memory: {_counted(sum(calls.values()), 'collective call')} ({_bytes(carried)}),"
        f" {_counted(sum(one.sent for one in ranks), 'message')} ({_bytes(large)} in large ones),"
        f" {_counted(sum(int(one.counts['windows']) for one in ranks), 'window')}.",
    ]
    if most := [f"{name} {count:,}" for name, count in calls.most_common(MOST) if count]:
        lines.append(f"Most often: {', '.join(most)}.")
    lines.append(f"Time in collective calls, of all ranks together: {sum(seconds.values()):.1f} s.")
    if reasons:
        told = ", ".join(f"{why} {count:,}" for why, count in reasons.most_common(MOST))
        lines.append(f"Left to the MPI library: {_counted(sum(reasons.values()), 'call')}: {told}.")
    if contention := sum(one.counts["contention_seconds"] for one in ranks):
        lines.append(
            f"Other processes competed for the ranks' CPUs for {contention:.1f} s, all ranks together."
        )
    return lines


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}{'s' * (number != 1)}"


def _bytes(number: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} B"
