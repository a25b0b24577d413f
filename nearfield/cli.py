"""The `nearfield` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point. What takes a launcher's command line is answered without Typer, `run` where tools/run.cpp leaves it to us."""
    if len(sys.argv) > 1 and sys.argv[1] == "run":
        from nearfield import run

        sys.exit(run.main(sys.argv[2:]))
    if len(sys.argv) > 1 and sys.argv[1] == "compare":
        from nearfield import compare

        sys.exit(compare.main(sys.argv[2:]))
    from nearfield.commands import app

    app(prog_name="nearfield")
