"""`nearfield info`: what this machine offers (nearfield/info.py)."""

from typing import Annotated

import typer

from nearfield.commands.registry import command


@command
def info(
    json: Annotated[bool, typer.Option(help="Print JSON, of everything.")] = False,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Also memory, all settings, figures of the machine, algorithms."),
    ] = False,
    settings: Annotated[
        bool, typer.Option(help="Print the settings only, as docs/settings.md has them.")
    ] = False,
) -> None:
    """Show the machine, ways of reaching memory, hosts.

    Of the CPUs it counts those really available; of ways that do not work here it says why.
    """
    from nearfield.info import settings_table, show

    if settings:
        typer.echo(settings_table())
    else:
        show(json, everything)
