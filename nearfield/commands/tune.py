"""`nearfield tune`: a file of what is fastest here (nearfield/tune.py)."""

import os
from pathlib import Path
from typing import Annotated, Optional

import typer

from nearfield.commands.registry import command
from nearfield.operations import OPERATIONS


@command
def tune(
    op: Annotated[str, typer.Option(help="Collectives, separated by commas.")] = OPERATIONS,
    ranks: Annotated[str, typer.Option(help="Numbers of ranks; by default as many as there are CPUs.")] = "",
    sizes: Annotated[str, typer.Option(help="Bytes: 8:4M (powers of two), or a list.")] = "8:4M",
    host: Annotated[str, typer.Option(help="The host whose launcher starts the ranks.")] = "mpich",
    seconds: Annotated[float, typer.Option(min=0, help="Time per operation and size.")] = 0.3,
    out: Annotated[Optional[Path], typer.Option(help="The file; by default where ranks look for it.")] = None,
) -> None:
    """Measure the fastest algorithms, for NEARFIELD_CHOOSE=file.

    Over nodes nothing is tuned beforehand: jobs try what there is in their first calls (NEARFIELD_CHOOSE=trial).
    """
    from nearfield import tune as tuning
    from nearfield.outputs import check_outputs
    from nearfield.values import check_words, parse_ranks, parse_sizes

    check_outputs([out])
    operations = check_words(op.split(","), OPERATIONS.split(","), "collective with algorithms")
    counts = parse_ranks(ranks) if ranks else [max(2, len(os.sched_getaffinity(0)))]
    path = out or tuning.stored_tuning()
    cells = tuning.tune(operations, counts, parse_sizes(sizes), host, seconds, path)
    typer.echo(f"{len(cells)} cells in {path}; NEARFIELD_CHOOSE=file uses them", err=True)
