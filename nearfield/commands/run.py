"""`nearfield run`: answered in nearfield/cli.py before Typer is loaded; listed here so that --help names it."""

from __future__ import annotations

from nearfield.commands.registry import command


@command
def run() -> None:
    """Run a launcher with Nearfield under its MPI programs.

    `nearfield run mpiexec -n 4 ./program`; `nearfield run --help` lists its options.
    """
