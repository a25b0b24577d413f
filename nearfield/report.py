"""The page of a run: what a program's calls of MPI did, as one HTML file without anything from outside."""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from nearfield import __version__, page
from nearfield.recording import total

Record = dict[str, Any]
MOST = 40  # rows of a table
STYLE = """
:root { --program: #c9d1d9; --waiting: #d95f02; --calls: #1b6ca8; --passed: #7b3fa0 }
@media (prefers-color-scheme: dark) { :root { --program: #4a525c; --waiting: #ff9d4d; --calls: #5aa9e6; --passed: #c08be0 } }
h1 { overflow-wrap: anywhere }
.bars .bar { display: flex; height: 18px; overflow: hidden; background: none }
.key i { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 5px } .key span { margin-right: 14px }
.program { background: var(--program) } .waiting { background: var(--waiting) } .calls { background: var(--calls) }
.host { background: var(--passed) }
"""
PARTS = (
    ("program", "the program itself"),
    ("waiting", "waiting for other ranks"),
    ("calls", "in calls otherwise: copying, reducing, matching"),
    ("host", "in the host MPI"),
)


def write_page(run: Record, path: Path) -> None:
    """Writes the page of what `nearfield.recording.join` has made."""
    body = "".join(_world(world, number, len(run["worlds"])) for number, world in enumerate(run["worlds"]))
    if not run["worlds"]:
        body = "<h1>No program of MPI has run</h1>"
    page.write_page(
        path, "Nearfield: what a program did", [body, f"<p class=faint>Nearfield {__version__}</p>"], STYLE
    )


def _world(world: Record, number: int, worlds: int) -> str:
    title = f"{number + 1} of {worlds}: " * (worlds > 1) + (world["program"] or "a program")
    where = sorted({rank["host"] for rank in world["ranks"]})
    nodes = where[0] if len(where) == 1 else f"{len(where)} nodes"
    about = f"{world['size']} ranks on {nodes}, {_time(world['seconds'])}, {world['mpi']}"
    parts = [
        f"<h1>{_text(title)}</h1><p class=faint>{_text(about)}</p>",
        _summary(world),
        _remarks(world),
        _bars(world),
        _places(world),
        _sizes(world),
        _host(world),
        _communicators(world),
        _waited_for(world),
        _ranks(world),
    ]
    return "".join(parts)


def parts_of(world: Record, rank: Record) -> dict[str, float]:
    """Seconds of a rank by what it did; together they are its time, unless its threads were in calls together."""
    ours = [row for row in world["rows"] if row["by"] != "host"]
    host = [row for row in world["rows"] if row["by"] == "host"]
    waiting = total(ours, "waiting", rank["rank"])
    found = {
        "waiting": waiting,
        "calls": max(0.0, total(ours, "seconds", rank["rank"]) - waiting),
        "host": total(host, "seconds", rank["rank"]),
    }
    return {"program": max(0.0, rank["seconds"] - sum(found.values())), **found}


def _summary(world: Record) -> str:
    all_parts = [parts_of(world, rank) for rank in world["ranks"]]
    time = sum(sum(parts.values()) for parts in all_parts) or 1
    share = {name: sum(parts[name] for parts in all_parts) / time for name, _ in PARTS}
    in_mpi = 1 - share["program"]
    lines = [
        f"<p class=lead><b>{in_mpi:.0%} of the time was in MPI</b>: {share['waiting']:.0%} waiting for other ranks, "
        f"{share['calls']:.0%} in calls otherwise, {share['host']:.0%} in the host MPI."
    ]
    if world["rows"] and in_mpi > 0:
        place, rows = next(iter(_grouped(world["rows"], lambda row: (row["function"], row["site"]))))
        here = total(rows, "seconds") / time
        lines.append(f" Most of it in {_text(place[0])} from {_text(place[1])}: {here:.0%} of the time.")
    waits = world["waited_for"]
    if waits:
        for_whom: dict[int, float] = defaultdict(float)
        for one in waits:
            for_whom[one["for"]] += one["seconds"]
        late = max(for_whom, key=lambda rank: for_whom[rank])
        lines.append(f" The others waited longest for rank {late}: {_time(for_whom[late])} in all.")
    return "".join(lines) + "</p>"


def _remarks(world: Record) -> str:
    lines = []
    if world["missing"]:
        names = ", ".join(map(str, world["missing"][:20])) + ", ..." * (len(world["missing"]) > 20)
        lines.append(f"Nothing is known of rank {names}: it was killed early, or its files are elsewhere.")
    early = [str(rank["rank"]) for rank in world["ranks"] if not rank["ending"]]
    if early:
        lines.append(f"Rank {', '.join(early[:20])} did not end by itself: this is what was saved before.")
    beset = [rank for rank in world["ranks"] if rank.get("company_seconds", 0) > 0.05 * rank["seconds"]]
    if beset:
        names = ", ".join(str(rank["rank"]) for rank in beset[:20]) + ", ..." * (len(beset) > 20)
        # It is believed to last for a while after it was last seen, and may have begun before the first call.
        most = min(1, max(rank["company_seconds"] / rank["seconds"] for rank in beset))
        lines.append(f"Others wanted the CPUs of rank {names}, for up to {most:.0%} of the time.")
    lost = sum(rank["events_lost"] for rank in world["ranks"])
    if lost:
        lines.append(f"{lost} calls are not in the trace, which keeps the last of each thread.")
    lost = sum(rank["rows_lost"] for rank in world["ranks"])
    if lost:
        lines.append(f"{lost} calls found no room in the tables and are not counted.")
    return "".join(f"<p><b>{_text(line)}</b></p>" for line in lines)


def _bars(world: Record) -> str:
    key = "".join(f"<span><i class={name}></i>{text}</span>" for name, text in PARTS)
    longest = max((rank["seconds"] for rank in world["ranks"]), default=0) or 1
    lines = []
    for rank in world["ranks"][:64]:
        parts = parts_of(world, rank)
        whole = max(longest, sum(parts.values()))
        told = ", ".join(f"{name} {_time(parts[name])}" for name, _ in PARTS)
        pieces = "".join(
            f"<span class={name} style='width:{100 * parts[name] / whole:.2f}%'></span>" for name, _ in PARTS
        )
        lines.append(
            f"<span>rank {rank['rank']}</span><div class=bar role=img title='{told}' aria-label='{told}'>{pieces}</div>"
            f"<span>{_time(rank['seconds'])}</span>"
        )
    more = (
        f"<p class=faint>and {len(world['ranks']) - 64} further ranks</p>" if len(world["ranks"]) > 64 else ""
    )
    return f"<p class=key>{key}</p><div class=bars>{''.join(lines)}</div>{more}"


def _places(world: Record) -> str:
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
    return _table("Where the calls are, over all ranks", titles, lines, 3)


def _sizes(world: Record) -> str:
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
    return _table("Sizes and algorithms", titles, lines, 3)


def _host(world: Record) -> str:
    rows = [row for row in world["rows"] if row["by"] == "host"]
    if not rows:
        return "<h2>What went to the host</h2><p>Nothing of what was recorded.</p>"
    names = _names(world)
    lines = [
        [*key, f"{int(total(found, 'calls'))}", _time(total(found, "seconds"))]
        for key, found in _grouped(
            rows, lambda row: (row["function"], row["site"], names.get(row["communicator"], ""))
        )
    ]
    return _table("What went to the host, and what it cost", "call,place,communicator,calls,time", lines, 3)


def _communicators(world: Record) -> str:
    names = _names(world)
    sizes = {names[one["id"]]: one["size"] for one in world["communicators"]}
    lines = [
        [
            *(key, str(sizes.get(key, "")), f"{int(total(rows, 'calls'))}"),
            *(_bytes(total(rows, "bytes")), _time(total(rows, "seconds")), _time(total(rows, "waiting"))),
        ]
        for key, rows in _grouped(world["rows"], lambda row: names.get(row["communicator"], "none"))
    ]
    return _table("Communicators", "communicator,ranks,calls,bytes,time,waiting", lines, 1)


def _waited_for(world: Record) -> str:
    waits = world["waited_for"]
    if waits is None:
        return (
            "<h2>Who waited for whom</h2><p class=faint>Known where calls are traced, on one node: "
            "nearfield run --trace.</p>"
        )
    lines = [
        [f"rank {one['rank']}", f"rank {one['for']}", _time(one["seconds"]), str(one["calls"])]
        for one in waits
    ]
    return _table("Who waited for whom", "who,for whom,time,calls", lines, 2)


def _ranks(world: Record) -> str:
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
    return _table("Ranks compared", titles, lines, 3)


def _names(world: Record) -> dict[str, str]:
    """What to call communicators: by their names, which several may have, those without by their size and a number."""
    return {
        one["id"]: one["name"] or f"{one['size']} ranks, {one['id'][:6]}" for one in world["communicators"]
    }


def _grouped(rows: Iterable[Record], key: Callable[[Record], Any]) -> list[tuple[Any, list[Record]]]:
    """Rows by a key, those that took longest first."""
    groups: dict[Any, list[Record]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return sorted(groups.items(), key=lambda group: -total(group[1], "seconds"))


def _table(title: str, titles: str, lines: list[list[str]], words: int) -> str:
    """`words`: how many of the first columns are text."""

    rows = [[_text(cell) for cell in line] for line in lines[:MOST]]
    more = f"<p class=faint>and {len(lines) - MOST} further rows</p>" if len(lines) > MOST else ""
    return f"<h2>{title}</h2>{page.table(titles.split(','), rows, range(words))}{more}"


def _text(text: str) -> str:
    # Ranks write bytes that are no ASCII as Python's surrogateescape has them.
    return html.escape(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


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
