"""`nearfield report`: the page of a run again (nearfield/report.py)."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from nearfield.commands.registry import command


@command
def report(
    run: Annotated[Path, typer.Argument(help="What `nearfield run --report` has stored beside its page.")],
    out: Annotated[
        Optional[Path], typer.Option(help="The page; by default beside it, of the same name.")
    ] = None,
) -> None:
    """Write the page of a run again, from its JSON."""
    from nearfield import recording
    from nearfield.outputs import PAGE, need

    need(PAGE)
    from nearfield import report as pages

    found = recording.load(run)
    page = out or run.with_suffix(".html")
    try:
        pages.write_page(found, page)
    except OSError as error:
        raise ValueError(f"cannot write {page}: {error.strerror}") from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{run} is damaged: {type(error).__name__} {error}") from None
    typer.echo(f"report: {page}")
