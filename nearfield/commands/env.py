"""`nearfield env`: answered in nearfield/cli.py before Typer is loaded; listed here so that --help names it."""

from __future__ import annotations

from nearfield.commands.registry import command


@command
def env() -> None:
    """Print what `nearfield run` would set, for job scripts.

    `eval "$(nearfield env)"`; `nearfield env --help` lists its options.
    """
