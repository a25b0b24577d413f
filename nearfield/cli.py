"""The `nearfield` command."""

from __future__ import annotations

import sys
from collections.abc import Callable


def main() -> None:
    """Entry point."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if answer := _without_typer(name):
        sys.exit(answer(sys.argv[2:], name))
    try:
        from nearfield.commands import app
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("nearfield"):
            raise
        sys.exit(
            f"nearfield: Python's package {missing.name} is not there, which this needs:"
            f" pip install {missing.name}, or your system's package of it"
        )
    app(prog_name="nearfield")


def _without_typer(name: str) -> Callable[[list[str], str], int | None] | None:
    """What takes a command line, or is asked by scripts; `run` and `exec` where tools/run.cpp leaves them to us. `afterwards` is what
    it calls itself."""
    if name in ("run", "exec"):
        from nearfield import run as module
    elif name == "env":
        from nearfield import environment as module
    elif name == "compare":
        from nearfield import compare as module
    elif name == "check":
        from nearfield import check as module
    elif name == "afterwards":
        from nearfield import afterwards as module
    else:
        return None
    return module.main
