"""Seeded faults: patches that break Nearfield in one place, each with a header that says what, and which tests find it.

A header has one `broken`, `shows` (what a user would see), `area` and `class`, and one or more lines `finder`:

    finder: gtest PRESET PROGRAM FILTER     tests of GoogleTest; PROGRAM is a regular expression of programs' names
    finder: proof PROTOCOL FILTER           a model, which `make test` explores again when its protocol has changed
    finder: pytest ARGUMENTS                as on pytest's command line
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

PATCHES = Path(__file__).parent
AREAS = ("engine", "shim", "heap", "command")
PRESETS = ("release", "asan", "tsan", "ubsan", "aarch64")


@dataclass(frozen=True)
class Finder:
    """Tests that are expected to fail with a fault."""

    kind: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join([self.kind, *map(shlex.quote, self.words)])


@dataclass(frozen=True)
class Fault:
    """A patch and its header."""

    path: Path
    broken: str
    shows: str
    area: str
    kind: str
    finders: tuple[Finder, ...]

    @property
    def name(self) -> str:
        return self.path.stem


def read_finder(text: str) -> Finder:
    """Raises ValueError for what is none."""
    kind, *words = shlex.split(text)
    wanted = {
        "gtest": len(words) == 3 and words[0] in PRESETS,
        "proof": len(words) == 2,
        "pytest": bool(words),
    }
    if not wanted.get(kind):
        raise ValueError(f"no finder: {text}")
    return Finder(kind, tuple(words))


def read_fault(path: Path) -> Fault:
    """Raises ValueError where the header is not complete."""
    header = re.sub(r"\n +", " ", path.read_text().partition("\ndiff --git")[0])
    fields: dict[str, list[str]] = {}
    for line in filter(None, header.splitlines()):
        key, colon, value = line.partition(": ")
        if not colon:
            raise ValueError(f"{path.name}: {line}")
        fields.setdefault(key, []).append(value)
    finders = tuple(map(read_finder, fields.pop("finder", [])))
    if sorted(fields) != ["area", "broken", "class", "shows"] or any(len(v) > 1 for v in fields.values()):
        raise ValueError(f"{path.name}: {', '.join(fields)}")
    one = {key: values[0] for key, values in fields.items()}
    if one["area"] not in AREAS or not finders:
        raise ValueError(f"{path.name}: area {one['area']}, {len(finders)} finders")
    return Fault(path, one["broken"], one["shows"], one["area"], one["class"], finders)


def all_faults() -> list[Fault]:
    """In the order of their numbers."""
    return [read_fault(path) for path in sorted(PATCHES.glob("*.patch"))]
