"""Joins the recordings of a run's ranks (mpi/shim/recording) to one description, which is stored as JSON.

    {"format": 1, "worlds": [{"program", "mpi", "size", "seconds", "missing": [rank],
      "communicators": [{"id", "name", "size", "inter", "members": [rank], "remote": [rank]}],
      "ranks": [{"rank", "host", "pid", "ending", "seconds", "cpu", "contention", "contention_seconds",
        "rows_lost", "events_lost"}],
      "rows": [{"function", "kind", "site", "communicator", "bytes_from", "by", "ranks": {rank: {...}}}],
      "sent": [{"rank", "to", "messages", "bytes"}],
      "waited_for": [{"rank", "for", "seconds", "calls"}] or null}]}

A row sums up calls from one place in the program, with the same function, communicator, power of two of lengths and algorithm. For each
rank it has calls, bytes, seconds, waiting (a part of seconds) and longest. `by` is the algorithm, "host", or "" if there is neither. Each
group of an intercommunicator has an entry; `remote` are the ranks of the other group. `sent` counts messages between ranks. A persistent
send counts once, however often it was started. Messages do not count if their communicator's first rank has written no file.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FORMAT = 1
Record = dict[str, Any]


def load(path: Path) -> Record:
    """Reads a stored description. Raises ValueError if the file is none."""
    try:
        found = json.loads(path.read_text())
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT or "worlds" not in found:
        raise ValueError(f"{path} was not written by `nearfield run --report` of this version")
    return found


def join(directory: Path) -> Record:
    """The description of all worlds whose ranks have written to a directory; it has no worlds if no rank has."""
    ranks = _ranks(directory)
    resolved = _resolve(ranks)
    worlds = [_world(found, resolved) for found in _worlds(ranks)]
    return _readable({"format": FORMAT, "worlds": worlds})


def join_traces(directory: Path) -> Record:
    """One trace of all ranks, in the order of time from its first call on; each world's processes are apart."""
    ranks = _ranks(directory)
    names: list[Record] = []
    events: list[Record] = []
    for number, world in enumerate(_worlds(ranks)):
        for rank in world:
            for event in _events(rank):
                event["pid"] = number * 1_000_000 + rank["rank"]
                (names if event["ph"] == "M" else events).append(event)
    events.sort(key=lambda event: event["ts"])
    first = events[0]["ts"] if events else 0
    for event in events:
        event["ts"] = round(event["ts"] - first, 3)
    lost = sum(rank["events_lost"] for rank in ranks)
    return {"displayTimeUnit": "ns", "otherData": {"events_lost": lost}, "traceEvents": names + events}


def seconds_in_mpi(directory: Path) -> float | None:
    """The seconds that a rank spent in MPI, on average, summed over all worlds; None if no rank has written."""
    ranks = _ranks(directory)
    if not ranks:
        return None
    return sum(
        sum(row["ns"] for rank in world for row in rank["rows"]) / len(world) / 1e9
        for world in _worlds(ranks)
    )


def _ranks(directory: Path) -> list[Record]:
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(directory.glob("*.json"))]


def _readable(record: Any) -> Any:
    """Returns the record with readable texts: bytes that surrogateescape has kept are decoded as UTF-8, or replaced if they are not."""
    if isinstance(record, str):
        if record.isascii():
            return record
        return record.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if isinstance(record, list):
        return [_readable(each) for each in record]
    if isinstance(record, dict):
        return {_readable(key): _readable(value) for key, value in record.items()}
    return record


def _worlds(ranks: list[Record]) -> list[list[Record]]:
    """Ranks by their MPI_COMM_WORLD: those of one size that began together, each rank once.

    Ranks of one node that share memory have the number of their job, so jobs are not mixed there. Parts of a world on several
    nodes are joined by the times at which they began.
    """
    parts: dict[Any, list[Record]] = {}
    for number, rank in enumerate(sorted(ranks, key=lambda rank: rank["began_ns"])):
        job = (rank["node"], rank["job"]) if rank["job"] else number
        parts.setdefault((rank["size"], job), []).append(rank)
    open_worlds: dict[int, list[Record]] = {}
    found = []
    for (size, _), part in parts.items():
        world = open_worlds.get(size)
        if world is None or any(_never_together(one, other) for one in part for other in world):
            world = open_worlds[size] = []
            found.append(world)
        world += part
    return [sorted(world, key=lambda rank: rank["rank"]) for world in found]


def _never_together(one: Record, other: Record) -> bool:
    """Whether two ranks of different parts cannot belong to one world."""
    same_node = one["job"] and other["job"] and one["node"] == other["node"]
    return one["rank"] == other["rank"] or bool(same_node)


def _world(ranks: list[Record], resolved: dict[tuple[str, int], str]) -> Record:
    size = ranks[0]["size"]
    present = {rank["rank"] for rank in ranks}
    communicators: dict[str, Record] = {}
    rows: dict[tuple, Record] = {}
    for rank in ranks:
        for each in rank["communicators"]:
            key = _communicator(each)
            empty = {
                "id": key,
                "size": each["size"],
                "name": "",
                "inter": each["inter"],
                "members": [],
                "remote": [],
            }
            one = communicators.setdefault(key, empty)
            for what in ("name", "members", "remote"):
                one[what] = one[what] or each[what]
        sites = [resolved[site["object"], site["offset"]] or _place(site) for site in rank["sites"]]
        for row in rank["rows"]:
            which = row["communicator"]
            communicator = None if which is None else _communicator(rank["communicators"][which])
            about = {
                **{key: row[key] for key in ("function", "kind", "bytes_from", "by")},
                "site": sites[row["site"]],
                "communicator": communicator,
            }
            one = rows.setdefault(tuple(about.values()), {**about, "ranks": {}})
            sums = one["ranks"].setdefault(str(rank["rank"]), defaultdict(int))
            for key in ("calls", "bytes"):
                sums[key] += row[key]
            sums["seconds"] += row["ns"] / 1e9
            sums["waiting"] += row["waiting_ns"] / 1e9
            sums["longest"] = max(sums["longest"], row["longest_ns"] / 1e9)
    return {
        "program": ranks[0]["program"],
        "mpi": ranks[0]["mpi"],
        "size": size,
        "seconds": max(rank["ns"] for rank in ranks) / 1e9,
        "missing": [rank for rank in range(size) if rank not in present],
        "ranks": [
            {
                key: rank[key]
                for key in ("rank", "host", "pid", "ending", "contention", "rows_lost", "events_lost")
            }
            | {
                "seconds": rank["ns"] / 1e9,
                "cpu": rank["cpu_ns"] / 1e9,
                "contention_seconds": rank["contention_ns"] / 1e9,
            }
            for rank in ranks
        ],
        "communicators": list(communicators.values()),
        "rows": sorted(rows.values(), key=lambda row: -sum(of["seconds"] for of in row["ranks"].values())),
        "sent": _sent(ranks, communicators),
        "waited_for": _waited_for(ranks, communicators),
    }


def _sent(ranks: list[Record], communicators: dict[str, Record]) -> list[Record]:
    """Sums the messages of all communicators, for each pair of ranks in MPI_COMM_WORLD."""
    sums: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for rank in ranks:
        for each in rank["communicators"]:
            known = communicators[_communicator(each)]
            members = known["remote"] if known["inter"] else known["members"]
            for partner, messages, number in each["sent"]:
                if partner < len(members) and members[partner] >= 0:
                    one = sums[rank["rank"], members[partner]]
                    one[0] += messages
                    one[1] += number
    return [
        {"rank": rank, "to": to, "messages": messages, "bytes": number}
        for (rank, to), (messages, number) in sorted(sums.items())
    ]


def _communicator(one: Record) -> str:
    """A key that is equal on all ranks of a communicator. The host's own number of a communicator differs from rank to rank, so it is left out."""
    context = one["context"]
    first = context.rpartition(".")[2]
    return f"host:{one['name']}:{one['size']}:{first}" if context.startswith("host:") else context


def _place(site: Record) -> str:
    return site["symbol"] or f"{Path(site['object']).name}+{site['offset']:#x}"


def _resolve(ranks: list[Record]) -> dict[tuple[str, int], str]:
    """Function, file and line of every address, where addr2line is installed and finds them; else ""."""
    offsets: dict[str, set[int]] = defaultdict(set)
    for rank in ranks:
        for site in rank["sites"]:
            offsets[site["object"]].add(site["offset"])
    found: dict[tuple[str, int], str] = {}
    tool = shutil.which("addr2line")
    for path, wanted in offsets.items():
        ordered = sorted(wanted)
        lines = _lines_of(tool, path, ordered) if tool and Path(path).exists() else []
        for index, offset in enumerate(ordered):
            function, line = lines[2 * index : 2 * index + 2] or ("??", "??:0")
            place = Path(line.split(" (disc")[0]).name
            known = not place.startswith("??")
            text = "" if function == "??" else function
            found[path, offset] = f"{text} ({place})" if text and known else text or (place if known else "")
    return found


def _lines_of(tool: str, path: str, offsets: list[int]) -> list[str]:
    addresses = "\n".join(f"{offset:#x}" for offset in offsets)
    try:
        done = subprocess.run(
            [tool, "-C", "-f", "-e", path],
            input=addresses,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",  # as ranks have it, for files may have any names
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = done.stdout.splitlines()
    return lines if len(lines) == 2 * len(offsets) else []


def _events(rank: Record) -> list[Record]:
    """The events that a rank has traced; an empty list if it has not, or its file cannot be read."""
    try:
        text = Path(rank["trace"]).read_text(encoding="utf-8") if rank["trace"] else '{"traceEvents": []}'
        events = json.loads(text)["traceEvents"]
        return _readable(events) if "\\udc" in text else events
    except (OSError, ValueError):
        return []


def _waited_for(ranks: list[Record], communicators: dict[str, Record]) -> list[Record] | None:
    """Computes from the traces how long each rank waited for each other. None if there are no traces, or if ranks ran on several hosts.

    In a blocking collective all ranks count as waiting for the last one to come, at most for the length of their own call (in
    operations with a root a call may end earlier). A blocking receive waits for its sender; the trace has the time.
    """
    if not any(rank["trace"] for rank in ranks) or len({rank["host"] for rank in ranks}) > 1:
        return None
    sums: dict[tuple[int, int], list[float]] = defaultdict(lambda: [0, 0])
    meetings: dict[tuple[str, int], dict[int, Record]] = defaultdict(dict)
    for rank in ranks:
        for event in _events(rank):
            about = event.get("args", {})
            on = communicators.get(about.get("communicator"), {"inter": False, "members": []})
            members = on["remote"] if on["inter"] else on["members"]
            if event.get("cat") == "collective" and _blocks(event["name"]) and not on["inter"]:
                meetings[about.get("communicator"), about["number"]][rank["rank"]] = event
            elif event.get("cat") == "message" and event["name"] in ("MPI_Recv", "MPI_Probe", "MPI_Recv_c"):
                partner = about.get("partner", -1)
                if 0 <= partner < len(members) and about["waiting"]:
                    _add(sums, rank["rank"], members[partner], about["waiting"])
    for (communicator, _), events in meetings.items():
        size = communicators.get(communicator, {}).get("size", 0)  # 0: ranks have no name for it in common
        if not size or len(events) < size or len({event["name"] for event in events.values()}) > 1:
            continue  # the others' have been overwritten
        last = max(events, key=lambda rank: events[rank]["ts"])
        for rank, event in events.items():
            waited = min(events[last]["ts"] - event["ts"], event["dur"])
            if rank != last and waited > 0:
                _add(sums, rank, last, waited)
    found = [
        {"rank": rank, "for": other, "seconds": seconds / 1e6, "calls": int(calls)}
        for (rank, other), (seconds, calls) in sums.items()
    ]
    return sorted(found, key=lambda one: -one["seconds"])


def _add(sums: dict[tuple[int, int], list[float]], rank: int, other: int, microseconds: float) -> None:
    one = sums[rank, other]
    one[0] += microseconds
    one[1] += 1


def _blocks(function: str) -> bool:
    return not function.startswith("MPI_I") and "_init" not in function


def total(rows: Iterable[Record], what: str, rank: int | None = None) -> float:
    """A sum over rows: of one rank, or of all."""
    return sum(
        of[what] for row in rows for number, of in row["ranks"].items() if rank is None or number == str(rank)
    )
