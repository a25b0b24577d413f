"""`nearfield stats`: what jobs' statistics say together (nearfield/served.py)."""

from pathlib import Path
from typing import Annotated

import typer

from nearfield.commands.registry import command


@command
def stats(
    places: Annotated[
        list[Path],
        typer.Argument(help="Files that NEARFIELD_STATS_FILE names, or directories with them (*.json)."),
    ],
) -> None:
    """Sum up the statistics that ranks of jobs have written.

    By NEARFIELD_STATS_FILE: what was served in how many jobs, and what was left to the MPI library, with reasons.
    """
    from nearfield.served import summarize
    from nearfield.statistics import read_statistics

    for line in summarize(read_statistics(*places)):
        typer.echo(line)
