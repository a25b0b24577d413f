"""`nearfield compare`: answered in nearfield/cli.py before Typer is loaded; listed here so that --help names it."""

from __future__ import annotations

from nearfield.commands.registry import command


@command
def compare() -> None:
    """Compare a command with and without Nearfield.

    `nearfield compare mpiexec -n 4 ./program`; `nearfield compare --help` lists its options.
    """
