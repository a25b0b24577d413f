#!/usr/bin/env python3
"""Checks pairs of releases and acquires. Each has `SYNC: name` in a comment on its line, or in a comment right above its statement; the
release and its acquires have the same name.

    sync_pairs.py            fails for a name without a release or without an acquire, and for ordered accesses without a name in
                             folders that have names throughout
    sync_pairs.py --missing  prints all ordered accesses without a name, and how many there are by folder
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACES = ("engine", "heap", "mpi")
NAMED = (
    "engine/base",
    "engine/choosing",
    "engine/collectives",
    "engine/context",
    "engine/copying",
    "engine/creation",
    "engine/fibers",
    "engine/hang_report",
    "engine/layout",
    "engine/machine",
    "engine/memory",
    "engine/orders",
    "engine/processor",
    "engine/reach",
    "engine/messages",
    "engine/reducing",
    "engine/settings",
    "engine/team",
    "engine/waiting",
    "engine/windows",
    "heap",
    "mpi/shim/abi",
    "mpi/shim/calls",
    "mpi/shim/collectives",
    "mpi/shim/communicators",
    "mpi/shim/handles",
    "mpi/shim/p2p",
    "mpi/shim/process",
    "mpi/shim/recording",
    "mpi/shim/rma",
    "mpi/shim/statistics",
    "mpi/shim/tools",
)
SYNC = re.compile(r"SYNC: ([\w-]+(?:, [\w-]+)*)")
ORDER = re.compile(r"(?<!signal_fence\(std::)\bmemory_order_(release|acquire|acq_rel|seq_cst)\b")
NEAR = 4  # lines of a statement, at most


@dataclass
class Found:
    """The places of the accesses of each name, and of those without a name."""

    releases: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    acquires: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    astray: list[str] = field(default_factory=list)  # names without an access
    missing: list[str] = field(default_factory=list)


def accesses_of(lines: list[str], at: int) -> list[int]:
    """The lines of the statement that a name on line `at` is about: its own, or else those that follow up to the first access."""
    code = lines[at].split("//")[0]
    if ORDER.search(code):
        return [at]
    after = [i for i in range(at + 1, min(at + NEAR, len(lines))) if ORDER.search(lines[i].split("//")[0])]
    before = [i for i in range(at - 1, max(at - NEAR, -1), -1) if ORDER.search(lines[i].split("//")[0])]
    near = before or after if code.strip() else after
    return near[:1]


def look(path: Path, found: Found) -> None:
    lines = path.read_text().splitlines()
    where = path.relative_to(ROOT)
    named = set()
    for at, line in enumerate(lines):
        if not (names := SYNC.search(line)):
            continue
        accesses = accesses_of(lines, at)
        if not accesses:
            found.astray.append(f"{where}:{at + 1}: {names[1]}")
        named.update(accesses)
        orders = {order for i in accesses for order in ORDER.findall(lines[i])}
        for name in names[1].split(", "):
            if orders & {"release", "acq_rel", "seq_cst"}:
                found.releases[name].append(f"{where}:{at + 1}")
            if orders & {"acquire", "acq_rel", "seq_cst"}:
                found.acquires[name].append(f"{where}:{at + 1}")
    found.missing += [
        f"{where}:{at + 1}"
        for at, line in enumerate(lines)
        if at not in named and ORDER.search(line.split("//")[0])
    ]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--missing", action="store_true")
    asked = parser.parse_args(arguments)
    found = Found()
    for place in PLACES:
        for path in sorted((ROOT / place).rglob("*")):
            if path.suffix in (".cpp", ".hpp", ".h"):
                look(path, found)
    if asked.missing:
        print(*found.missing, sep="\n")
        folders = Counter("/".join(each.split("/")[:2]) for each in found.missing)
        print(", ".join(f"{folder} {count}" for folder, count in sorted(folders.items())))
        return 0
    wrong = [f"{each}: no ordered access belongs to that name" for each in found.astray]
    for name in sorted(found.releases.keys() | found.acquires.keys()):
        for kind, own, other in (
            ("release", found.releases, found.acquires),
            ("acquire", found.acquires, found.releases),
        ):
            if name not in other:
                wrong.append(f"{own[name][0]}: {name} is of this {kind} alone")
    wrong += [
        f"{each}: an ordered access without a name"
        for each in found.missing
        if each.startswith(tuple(f"{folder}/" for folder in NAMED))
    ]
    for each in wrong:
        print(each, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
