"""Where subcommands register, and what becomes of their failures."""

import functools
from collections.abc import Callable
from typing import Annotated

import typer

from nearfield import __version__
from nearfield.libraries import NotBuilt

# Plain help: by rich it would take half as long again.
app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def nearfield(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Print the version.")
    ] = False,
) -> None:
    """Makes MPI fast inside a node. `nearfield run --help` tells how to run a program, `nearfield compare --help` how to see what it would gain."""


def command(work: Callable[..., None]) -> Callable[..., None]:
    """Registers a subcommand of the function's name. Its expected failures become a line and exit status 2."""

    @functools.wraps(work)
    def guarded(*words, **options) -> None:
        try:
            work(*words, **options)
        except OSError as error:
            if not error.filename:
                raise
            fail(f"{error.filename}: {error.strerror}")
        except (NotBuilt, ValueError) as error:
            fail(str(error))

    app.command()(guarded)
    return work


def fail(text: str) -> None:
    """Says why, and ends with exit status 2."""
    typer.echo(f"nearfield: {text}", err=True)
    raise typer.Exit(2) from None
