"""`nearfield place`: a CPU for each rank, by who sends to whom (nearfield/place.py)."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from nearfield.commands.described import MACHINE
from nearfield.commands.registry import command


@command
def place(
    run: Annotated[Path, typer.Argument(help="What `nearfield run --report` has stored beside its page.")],
    machine: Annotated[str, typer.Option(help=f"{MACHINE} Of here lines are measured.")] = "here",
    world: Annotated[int, typer.Option(min=1, help="Which of the run's programs, where it had several.")] = 1,
    rankfile: Annotated[Optional[Path], typer.Option(help="Write it as Open MPI's rankfile.")] = None,
    node: Annotated[str, typer.Option(help="The node's name in the rankfile.")] = "localhost",
    json: Annotated[bool, typer.Option(help="Print JSON.")] = False,
) -> None:
    """Suggest a CPU for each rank of a program that has run.

    Ranks that have much for each other come near each other; says what that gains by the model, and what launchers take for it.
    """
    from dataclasses import asdict
    from json import dumps

    from nearfield import place as placing
    from nearfield.outputs import check_outputs

    check_outputs([rankfile])
    found = placing.suggest(run, machine, world)
    if rankfile:
        rankfile.write_text(placing.rankfile(found, node))
    if json:
        typer.echo(dumps(asdict(found) | {"launchers": placing.words_for(found, rankfile)}, indent=1))
    else:
        placing.show(found, rankfile)
