"""Computes the contents of the page on a run's MPI calls; nearfield/templates/report.html lays them out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from nearfield import page
from nearfield.page import Table
from nearfield.recording import total

Record = dict[str, Any]
MOST = 40  # rows of a table
MOST_BARS = 64
# Parts of a rank's time; their names are those of the page's colours.
PARTS = (
    ("program", "the program itself"),
    ("waiting", "waiting for other ranks"),
    ("calls", "the rest of the time in calls: copying, reducing, matching"),
    ("host", "in the host MPI"),
)


def write_page(run: Record, path: Path) -> None:
    """Writes the page of what `nearfield.recording.join` has made."""
    count = len(run["worlds"])
    worlds = [_world(world, f"{n} of {count}: " * (count > 1)) for n, world in enumerate(run["worlds"], 1)]
    page.write_page(path, "report.html", worlds=worlds, kinds=PARTS, most=MOST)


def _world(world: Record, number: str) -> Record:
    where = sorted({rank["host"] for rank in world["ranks"]})
    nodes = where[0] if len(where) == 1 else f"{len(where)} nodes"
    return {
        "title": number + (world["program"] or "a program"),
        "about": f"{world['size']} ranks on {nodes}, {_time(world['seconds'])}, {world['mpi']}",
        **_summary(world),
        "remarks": _remarks(world),
        "bars": _bars(world),
        "unseen": len(world["ranks"]) - MOST_BARS,
        # Title, table, what is said where there is none.
        "tables": (
            ("Where the calls are, over all ranks", _places(world), ""),
            ("Sizes and algorithms", _sizes(world), ""),
            (
                "What went to the host, and what it cost",
                _host(world),
                "The host served none of the recorded calls.",
            ),
            ("Communicators", _communicators(world), ""),
            (
                "Who waited for whom",
                _waited_for(world),
                "This table needs a trace of a job on one node: nearfield run --trace.",
            ),
            ("Ranks compared", _ranks(world), ""),
        ),
    }


def parts_of(world: Record, rank: Record) -> dict[str, float]:
    """Splits a rank's seconds into PARTS. The sum is the rank's time, unless several threads were in calls at the same time."""
    ours = [row for row in world["rows"] if row["by"] != "host"]
    host = [row for row in world["rows"] if row["by"] == "host"]
    waiting = total(ours, "waiting", rank["rank"])
    found = {
        "waiting": waiting,
        "calls": max(0.0, total(ours, "seconds", rank["rank"]) - waiting),
        "host": total(host, "seconds", rank["rank"]),
    }
    return {"program": max(0.0, rank["seconds"] - sum(found.values())), **found}


def _summary(world: Record) -> Record:
    all_parts = [parts_of(world, rank) for rank in world["ranks"]]
    time = sum(sum(parts.values()) for parts in all_parts) or 1
    share = {name: sum(parts[name] for parts in all_parts) / time for name, _ in PARTS}
    found: Record = {
        "in_mpi": f"{1 - share['program']:.0%}",
        "share": {name: f"{part:.0%}" for name, part in share.items()},
        "busiest": None,
        "late": None,
    }
    if world["rows"] and share["program"] < 1:
        (function, site), rows = next(
            iter(_grouped(world["rows"], lambda row: (row["function"], row["site"])))
        )
        here = total(rows, "seconds") / time
        found["busiest"] = {"function": function, "site": site, "share": f"{here:.0%}"}
    if world["waited_for"]:
        for_whom: dict[int, float] = defaultdict(float)
        for one in world["waited_for"]:
            for_whom[one["for"]] += one["seconds"]
        late = max(for_whom, key=lambda rank: for_whom[rank])
        found["late"] = {"rank": late, "time": _time(for_whom[late])}
    return found


def _remarks(world: Record) -> list[str]:
    lines = []
    if world["missing"]:
        names = ", ".join(map(str, world["missing"][:20])) + ", ..." * (len(world["missing"]) > 20)
        lines.append(f"Nothing is known of rank {names}: it was killed early, or its files are elsewhere.")
    early = [str(rank["rank"]) for rank in world["ranks"] if not rank["ending"]]
    if early:
        lines.append(f"Rank {', '.join(early[:20])} was killed: its figures are those that it saved before.")
    beset = [rank for rank in world["ranks"] if rank.get("contention_seconds", 0) > 0.05 * rank["seconds"]]
    if beset:
        names = ", ".join(str(rank["rank"]) for rank in beset[:20]) + ", ..." * (len(beset) > 20)
        # It is believed to last for a while after it was last seen, and may have begun before the first call.
        most = min(1, max(rank["contention_seconds"] / rank["seconds"] for rank in beset))
        lines.append(
            f"Other processes competed for the CPUs of rank {names} for up to {most:.0%} of the time."
        )
    lost = sum(rank["events_lost"] for rank in world["ranks"])
    if lost:
        lines.append(f"{lost} calls are not in the trace, which keeps only the last calls of each thread.")
    lost = sum(rank["rows_lost"] for rank in world["ranks"])
    if lost:
        lines.append(f"{lost} calls are not counted, because the tables were full.")
    return lines


def _bars(world: Record) -> list[Record]:
    longest = max((rank["seconds"] for rank in world["ranks"]), default=0) or 1
    bars = []
    for rank in world["ranks"][:MOST_BARS]:
        parts = parts_of(world, rank)
        whole = max(longest, sum(parts.values()))
        bars.append(
            {
                "name": f"rank {rank['rank']}",
                "told": ", ".join(f"{name} {_time(parts[name])}" for name, _ in PARTS),
                "widths": [(name, 100 * parts[name] / whole) for name, _ in PARTS],
                "time": _time(rank["seconds"]),
            }
        )
    return bars


def _places(world: Record) -> Table:
    names = _names(world)
    lines = []
    for (site, function, communicator), rows in _grouped(
        world["rows"], lambda row: (row["site"], row["function"], names.get(row["communicator"], ""))
    ):
        by_rank = [total(rows, "seconds", rank["rank"]) for rank in world["ranks"]]
        seconds = sum(by_rank)
        slowest = by_rank.index(max(by_rank))
        lines.append(
            [
                *(site, function, communicator),
                *(f"{int(total(rows, 'calls'))}", _bytes(total(rows, "bytes")), _time(seconds)),
                _share(total(rows, "waiting"), seconds),
                _time(max(of["longest"] for row in rows for of in row["ranks"].values())),
                f"{_time(max(by_rank))} (rank {world['ranks'][slowest]['rank']})",
                _time(min(by_rank)),
            ]
        )
    titles = "place,call,communicator,calls,bytes,time,of it waiting,longest call,slowest rank,fastest"
    return _table(titles, lines, 3)


def _sizes(world: Record) -> Table:
    lines = []
    for (function, size, by), rows in _grouped(
        world["rows"], lambda row: (row["function"], row["bytes_from"], row["by"])
    ):
        calls = total(rows, "calls")
        seconds, waiting = total(rows, "seconds"), total(rows, "waiting")
        length = "none" if not size else f"{_bytes(size)} to {_bytes(2 * size)}"
        lines.append(
            [
                *(function, by or "-", length, f"{int(calls)}", _bytes(total(rows, "bytes")), _time(seconds)),
                *(_time(waiting / calls), _time(max(0.0, seconds - waiting) / calls)),
            ]
        )
    titles = "call,by,length,calls,bytes,time,waiting per call,otherwise per call"
    return _table(titles, lines, 3)


def _host(world: Record) -> Table | None:
    rows = [row for row in world["rows"] if row["by"] == "host"]
    if not rows:
        return None
    names = _names(world)
    lines = [
        [*key, f"{int(total(found, 'calls'))}", _time(total(found, "seconds"))]
        for key, found in _grouped(
            rows, lambda row: (row["function"], row["site"], names.get(row["communicator"], ""))
        )
    ]
    return _table("call,place,communicator,calls,time", lines, 3)


def _communicators(world: Record) -> Table:
    names = _names(world)
    sizes = {names[one["id"]]: one["size"] for one in world["communicators"]}
    lines = [
        [
            *(key, str(sizes.get(key, "")), f"{int(total(rows, 'calls'))}"),
            *(_bytes(total(rows, "bytes")), _time(total(rows, "seconds")), _time(total(rows, "waiting"))),
        ]
        for key, rows in _grouped(world["rows"], lambda row: names.get(row["communicator"], "none"))
    ]
    return _table("communicator,ranks,calls,bytes,time,waiting", lines, 1)


def _waited_for(world: Record) -> Table | None:
    waits = world["waited_for"]
    if waits is None:
        return None
    lines = [
        [f"rank {one['rank']}", f"rank {one['for']}", _time(one["seconds"]), str(one["calls"])]
        for one in waits
    ]
    return _table("who,for whom,time,calls", lines, 2)


def _ranks(world: Record) -> Table:
    lines = []
    for rank in world["ranks"]:
        parts = parts_of(world, rank)
        lines.append(
            [
                *(f"{rank['rank']}", rank["host"], rank["ending"] or "-"),
                *(_time(rank["seconds"]), _time(rank["cpu"])),
                *(_time(parts[name]) for name in ("waiting", "calls", "host")),
                f"{int(total(world['rows'], 'calls', rank['rank']))}",
                _bytes(total(world["rows"], "bytes", rank["rank"])),
            ]
        )
    titles = "rank,host,ended by,time,CPU,waiting,calls otherwise,in the host,calls,bytes"
    return _table(titles, lines, 3)


def _names(world: Record) -> dict[str, str]:
    """Names of communicators for the page. Several may have the same name; one without a name gets its size and a number."""
    return {
        one["id"]: one["name"] or f"{one['size']} ranks, {one['id'][:6]}" for one in world["communicators"]
    }


def _grouped(rows: Iterable[Record], key: Callable[[Record], Any]) -> list[tuple[Any, list[Record]]]:
    """Rows by a key, those that took longest first."""
    groups: dict[Any, list[Record]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return sorted(groups.items(), key=lambda group: -total(group[1], "seconds"))


def _table(titles: str, lines: list[list[str]], words: int) -> Table:
    """`words`: how many of the first columns are text."""
    return Table(titles.split(","), lines, range(words))


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return (
                f"{seconds * scale:.3g} {unit}" if seconds * scale < 1000 else f"{seconds * scale:.0f} {unit}"
            )
    return f"{seconds * 1e9:.0f} ns" if seconds else "0"


def _bytes(count: float) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}" if count / scale < 1000 else f"{count / scale:.0f} {unit}"
    return f"{count:.0f} B"


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.0%}" if whole else "-"
