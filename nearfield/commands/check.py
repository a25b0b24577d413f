"""`nearfield check`: answered in nearfield/cli.py before Typer is loaded; listed here so that --help names it."""

from __future__ import annotations

from nearfield.commands.registry import command


@command
def check() -> None:
    """Say whether programs would be served, and why not.

    `nearfield check ./program`; `nearfield check --help` lists its options.
    """
