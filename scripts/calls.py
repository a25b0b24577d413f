"""What Nearfield carries of MPI, what it passes on, and why: writes docs/calls.md from the tables of functions.

    calls.py           writes it
    calls.py --check   fails when it is not what the tables say

Families are those of mpi/functions.toml; functions that may block in the host (mpi/functions.def) belong to one of its
rules of what is passed on. Reasons are rows of mpi/statistics.def.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from functions import carriers, fits, forms

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/calls.md"


def carried(data: dict) -> list[tuple[list[str], str, str]]:
    """Names without MPI_ of what Nearfield has a version of, what is carried of them, and what goes to the host. Families
    of one text share a line; large-count forms are not named."""
    lines: dict[tuple[str, str, int], list[str]] = {}
    for family in data["families"]:
        texts = family["carried"], family["host"]
        names = [*family.get("by_hand", "").split(), *family.get("functions", {})]
        of_forms = zip(*(forms(name) for name in family.get("collectives", [])), strict=True)
        for form, group in enumerate([*([names] if names else []), *of_forms]):
            what, host = (text[form] if isinstance(text, list) else text for text in texts)
            apart = form if isinstance(texts[1], list) else -1
            lines.setdefault((what or "nothing", host, apart), []).extend(group)
    return [(names, what, host) for (what, host, _), names in lines.items()]


def passed_on(data: dict) -> dict[str, list[str]]:
    """Names of functions that may block in the host, by why. Raises ValueError for a name without a rule."""
    text = (ROOT / "mpi/functions.def").read_text()
    names = re.findall(r"^BLOCKING\((\w+), \w+,", text, re.MULTILINE)
    lines: dict[str, list[str]] = {}
    for name in (name for name in names if not (name.endswith("_c") and name[:-2] in names)):
        why = next((rule["why"] for rule in data["passed_on"] if fits(rule["rule"], name)), None)
        if not why:
            raise ValueError(f"mpi/functions.toml does not say what becomes of MPI_{name}")
        lines.setdefault(why, []).append(name)
    return lines


def reasons() -> list[tuple[str, str]]:
    """Names and meanings, as mpi/statistics.def has them."""
    text = (ROOT / "mpi/statistics.def").read_text()
    return re.findall(r'^REASON\(\w+, "([^"]+)", "([^"]+)"\)', text, re.MULTILINE)


def words_of(names: list[str]) -> str:
    """Names in a cell of a table."""
    return ", ".join(f"`{name}`" for name in names)


def page() -> str:
    """The page. Raises ValueError where the tables differ."""
    data = carriers()
    lines = [
        "# Calls: carried, passed on, and why",
        "",
        "<!-- Made by scripts/calls.py from mpi/functions.toml, mpi/functions.def and mpi/statistics.def. -->",
        "",
        "Functions of MPI, without MPI_ and without their large-count forms, which go the same ways. What is carried is served",
        "in shared memory; wrong arguments always go to the host, which raises the errors.",
        "",
        "| functions | carried | to the host |",
        "| --- | --- | --- |",
        *(f"| {words_of(names)} | {what} | {host} |" for names, what, host in carried(data)),
        "",
        "## Passed on",
        "",
        "These may block in the host, for other ranks as well; the progress thread keeps messages of Nearfield's going meanwhile, and",
        "`NEARFIELD_STATS=1` counts them. What is in neither table the program calls in its host directly: nothing there waits",
        "for other ranks.",
        "",
        "| functions | why |",
        "| --- | --- |",
        *(f"| {words_of(names)} | {why} |" for why, names in passed_on(data).items()),
        "",
        "## Reasons",
        "",
        "What the statistics say of collective calls that went to the host, under `why`.",
        "",
        "| reason | |",
        "| --- | --- |",
        *(f"| {reason} | {meaning} |" for reason, meaning in reasons()),
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    """Writes the page or compares it."""
    try:
        text = page()
    except ValueError as wrong:
        print(wrong, file=sys.stderr)
        return 1
    if sys.argv[1:] == ["--check"]:
        if not PAGE.exists() or PAGE.read_text() != text:
            print("docs/calls.md is not what the tables say; run scripts/calls.py", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
