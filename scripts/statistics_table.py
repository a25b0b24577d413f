"""Writes the table of statistics in docs/settings.md from mpi/statistics.def.

statistics_table.py           writes it
statistics_table.py --check   fails when it is not what the rows say
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/settings.md"
BEGIN, END = (
    "<!-- Made by scripts/statistics_table.py from mpi/statistics.def. -->",
    "<!-- The end of it. -->",
)
# By macro: where the JSON has such numbers, and what performance variables are called.
SCOPES = {
    "OF_OPERATION": ("`operations`, by operation", "nearfield_OPERATION_"),
    "OF_FUNCTION": ("`functions`, by function", ""),
    "OF_COMPONENT": ("`memory`, by component", "nearfield_memory_COMPONENT_"),
    "OF_PROCESS": ("`counts`", "nearfield_"),
}
ROW = re.compile(r'^(OF_\w+)\((\w+), (\w+), ([A-Z]+), (?:(always|on_request), )?"([^"]*)", ', re.MULTILINE)


def table() -> str:
    """The lines between the marks."""
    lines = [BEGIN, "", "| name | in JSON | performance variable | class | unit | counted | meaning |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    for scope, name, unit, of_class, counted, meaning in ROW.findall(
        (ROOT / "mpi/statistics.def").read_text()
    ):
        place, prefix = SCOPES[scope]
        when = counted or ("always" if scope == "OF_COMPONENT" else "on_request")
        variable = f"`{prefix}{name}`" if prefix else "none"
        lines.append(
            f"| `{name}` | {place} | {variable} | {of_class.lower()} | {unit} | {when.replace('_', ' ')} | {meaning} |"
        )
    return "\n".join([*lines, "", END])


def main() -> int:
    """Writes the table or compares it."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    text = before + table() + after
    if sys.argv[1:] == ["--check"]:
        if PAGE.read_text() != text:
            print(
                "docs/settings.md is not what mpi/statistics.def says; run scripts/statistics_table.py",
                file=sys.stderr,
            )
            return 1
        return 0
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
