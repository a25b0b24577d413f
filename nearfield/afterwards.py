"""What `nearfield run` says when a launcher has ended and nothing of its job was served (tools/run.cpp starts it then)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from nearfield.outcome import describe, read_outcome


def main(file: Path, command: list[str]) -> None:
    """Says it, and removes the file in which processes have left their word."""
    outcome = read_outcome(file)
    file.unlink()
    lines = describe(outcome)
    _say(lines)
    if lines and not outcome.reasons:
        from nearfield.check import explain_absence

        _say(explain_absence(command, dict(os.environ)))


def _say(lines: list[str]) -> None:
    for line in lines:
        print(f"nearfield run: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
