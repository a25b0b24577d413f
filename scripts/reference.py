"""Writes the tables of docs/reference between their marks, from the sources.

    reference.py           writes them
    reference.py --check   fails when a page is not what its sources say

A mark is a line `<!-- NAME: made by scripts/reference.py from FILES. -->`; the next `<!-- end -->` ends the table.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from functions import carriers, fits, forms

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs/reference"
MARK = re.compile(
    r"(<!-- ([\w ]+): made by scripts/reference\.py from [^\n]* -->\n).*?(<!-- end -->)", re.DOTALL
)


def table(titles: list[str], rows: list[list[str]]) -> list[str]:
    """Lines of a table in Markdown."""
    return [f"| {' | '.join(row)} |".replace("|  |", "| |") for row in (titles, ["---"] * len(titles), *rows)]


# ---------------------------------------------------------------- settings
# Settings that users need; all others are for those who develop or measure Nearfield.
USERS = (
    "NEARFIELD",
    "NEARFIELD_HEAP",
    "NEARFIELD_MESSAGES",
    "NEARFIELD_LOG",
    "NEARFIELD_LOG_FILE",
    "NEARFIELD_STATS",
    "NEARFIELD_STATS_FILE",
    "NEARFIELD_CHECK",
    "NEARFIELD_STALL_SECONDS",
    "NEARFIELD_STALL_SIGNAL",
    "NEARFIELD_RECORD",
    "NEARFIELD_TRACE",
    "NEARFIELD_REPRODUCIBLE",
    "NEARFIELD_PROGRESS",
    "NEARFIELD_WAIT",
    "NEARFIELD_MEMORY",
    "NEARFIELD_HEAP_KEEP",
    "NEARFIELD_SHM",
)
DECIDES = {
    "each_rank": "each rank",
    "any_rank": "off in any rank",
    "first_rank": "the first rank",
    "the_heap": "the heap of each rank",
}
SETTING = re.compile(
    r'\{\s*"(NEARFIELD\w*)",\s*"([^"]*)",\s*(?:Decides::)?(\w+),\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\}'
)


def settings() -> dict[str, list[str]]:
    """Rows by variable: variable, default, who decides, meaning."""
    found = {}
    for file in ("engine/settings/settings.cpp", "engine/base/early_settings.hpp"):
        for name, default, decides, text in SETTING.findall((ROOT / file).read_text()):
            meaning = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text)).replace("|", "\\|")
            found[name] = [f"`{name}`", f"`{default}`" * bool(default), DECIDES[decides], meaning]
    return found


def settings_of(users: bool) -> list[str]:
    rows = settings()
    names = USERS if users else [name for name in rows if name not in USERS]
    return table(["variable", "default", "decided by", "meaning"], [rows[name] for name in names])


# ---------------------------------------------------------------- statistics
# By macro: where the JSON has such numbers, and the prefix of performance variables.
SCOPES = {
    "OF_OPERATION": ("`operations`, by operation", "nearfield_OPERATION_"),
    "OF_FUNCTION": ("`functions`, by function", ""),
    "OF_COMPONENT": ("`memory`, by component", "nearfield_memory_COMPONENT_"),
    "OF_PROCESS": ("`counts`", "nearfield_"),
}
NUMBER = re.compile(r'^(OF_\w+)\((\w+), (\w+), ([A-Z]+), (?:(always|on_request), )?"([^"]*)", ', re.MULTILINE)


def statistics() -> list[str]:
    rows = []
    for scope, name, unit, of_class, counted, meaning in NUMBER.findall(
        (ROOT / "mpi/statistics.def").read_text()
    ):
        place, prefix = SCOPES[scope]
        when = counted or ("always" if scope == "OF_COMPONENT" else "on_request")
        variable = f"`{prefix}{name}`" if prefix else "none"
        rows.append([f"`{name}`", place, variable, of_class.lower(), unit, when.replace("_", " "), meaning])
    return table(["name", "in JSON", "performance variable", "class", "unit", "counted", "meaning"], rows)


def reasons() -> list[str]:
    text = (ROOT / "mpi/statistics.def").read_text()
    rows = re.findall(r'^REASON\(\w+, "([^"]+)", "([^"]+)"\)', text, re.MULTILINE)
    return table(["reason", "meaning"], [list(row) for row in rows])


# ---------------------------------------------------------------- calls of MPI
def words_of(names: list[str]) -> str:
    """Names in a cell of a table."""
    return ", ".join(f"`{name}`" for name in names)


def served() -> list[str]:
    """Functions that Nearfield has a version of. Families of one text share a line; large-count forms are not named."""
    lines: dict[tuple[str, str, int], list[str]] = {}
    for family in carriers()["families"]:
        texts = family["served"], family["host"]
        names = [*family.get("by_hand", "").split(), *family.get("functions", {})]
        of_forms = zip(*(forms(name) for name in family.get("collectives", [])), strict=True)
        for form, group in enumerate([*([names] if names else []), *of_forms]):
            what, host = (text[form] if isinstance(text, list) else text for text in texts)
            apart = form if isinstance(texts[1], list) else -1
            lines.setdefault((what or "nothing", host, apart), []).extend(group)
    rows = [[words_of(names), what, host] for (what, host, _), names in lines.items()]
    return table(["functions", "served", "to the host"], rows)


def passed_on() -> list[str]:
    """Functions that may block in the host, by the reason why they are the host's. Raises ValueError for a name without a rule."""
    rules = carriers()["passed_on"]
    text = (ROOT / "mpi/functions.def").read_text()
    names = re.findall(r"^BLOCKING\((\w+), \w+,", text, re.MULTILINE)
    lines: dict[str, list[str]] = {}
    for name in (name for name in names if not (name.endswith("_c") and name[:-2] in names)):
        why = next((rule["why"] for rule in rules if fits(rule["rule"], name)), None)
        if not why:
            raise ValueError(f"mpi/functions.toml does not say what becomes of MPI_{name}")
        lines.setdefault(why, []).append(name)
    return table(["functions", "why"], [[words_of(names), why] for why, names in lines.items()])


# ---------------------------------------------------------------- the C API
PROTOTYPE = re.compile(
    r"((?:/\*(?:[^*]|\*(?!/))*\*/\n)?)^(?:int|const char\*) (nf_\w+)\(([^;]*)\);", re.MULTILINE
)


def c_api() -> list[str]:
    """Functions of include/nearfield.h with the comments above them."""
    rows = []
    for comment, name, arguments in PROTOTYPE.findall((ROOT / "include/nearfield.h").read_text()):
        words = " ".join(comment.strip().removeprefix("/*").removesuffix("*/").replace("\n *", " ").split())
        words = re.sub(r"^---- .*", "", words).replace("|", "\\|")
        named = [re.split(r"[\s*]+", each.split("(")[0].strip())[-1] for each in split(arguments)]
        rows.append([f"`{name}({', '.join(filter(None, named))})`", words])
    return table(["function", "what the header says of it"], rows)


def split(arguments: str) -> list[str]:
    """Splits arguments at their commas; a function pointer is replaced by its name first."""
    arguments = re.sub(r"\w+ \(\*(\w+)\)\([^)]*\)", r"x \1", arguments)
    return [] if arguments.strip() == "void" else arguments.split(",")


# ---------------------------------------------------------------- pages
TABLES: dict[str, Callable[[], list[str]]] = {
    "settings for users": lambda: settings_of(True),
    "settings for developers": lambda: settings_of(False),
    "statistics": statistics,
    "reasons": reasons,
    "served": served,
    "passed on": passed_on,
    "functions": c_api,
}


def written(page: str) -> str:
    """A page with its tables as their sources have them."""
    return MARK.sub(lambda found: "\n".join([found[1], *TABLES[found[2]](), "", found[3]]), page)


def main() -> int:
    """Writes the pages or compares them."""
    status = 0
    for page in sorted(PAGES.glob("*.md")):
        before = page.read_text()
        try:
            text = written(before)
        except ValueError as wrong:
            print(wrong, file=sys.stderr)
            return 1
        if sys.argv[1:] != ["--check"]:
            page.write_text(text)
        elif text != before:
            print(
                f"{page.relative_to(ROOT)} is not what its sources say; run scripts/reference.py",
                file=sys.stderr,
            )
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
