"""`nearfield exec`: answered in nearfield/cli.py before Typer is loaded; listed here so that --help names it."""

from __future__ import annotations

from nearfield.commands.registry import command


@command
def exec() -> None:
    """Become a program with Nearfield, as one rank of a job.

    `mpiexec -n 4 apptainer exec image.sif nearfield exec ./program`; `nearfield exec --help` lists its options.
    """
