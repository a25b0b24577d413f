"""What `nearfield run` says when a launcher has ended and nothing of its job was served (tools/run.cpp starts it then)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from nearfield.outcome import describe, read_outcome


def main(arguments: list[str], called: str) -> None:
    """Says it in one message, and removes the file in which processes have left their word. `arguments`: that file, the launcher's exit
    status as a shell has it, -1 where nobody knows, and its command line."""
    file, (status, *command) = Path(arguments[0]), arguments[1:]
    outcome = read_outcome(file)
    file.unlink()
    lines = describe(outcome, int(status))
    if lines and not outcome.reasons:
        from nearfield.check import explain_absence

        lines += explain_absence(command, dict(os.environ))
    if lines:
        print("nearfield run: " + "\n  ".join(lines), file=sys.stderr, flush=True)
