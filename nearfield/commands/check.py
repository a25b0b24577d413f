"""`nearfield check`: whether programs would be served (nearfield/check.py)."""

import os
from typing import Annotated

import typer

from nearfield.commands.registry import command


@command
def check(
    programs: Annotated[
        list[str], typer.Argument(help="Programs or scripts, as a launcher would be given them.")
    ],
    host: Annotated[
        str, typer.Option(help="As of `nearfield run`: an installed host whose library comes first.")
    ] = "",
) -> None:
    """Say whether programs would be served, and why not.

    Names the MPI and the build of Nearfield that would serve them under `nearfield run`. The exit status is 0 where all of them are, or may be: a program that opens its MPI while it runs tells only then.
    """
    from nearfield.check import check as judge
    from nearfield.hosts import environment_of, host_names

    env = dict(os.environ) | (environment_of(host_names(host)[0]) if host else {})
    verdicts = [judge(program, env) for program in programs]
    for verdict in verdicts:
        typer.echo(verdict)
    if not all(verdict.served for verdict in verdicts):
        raise typer.Exit(1)
