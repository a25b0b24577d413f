"""`nearfield plan`: what a job needs of a node's memory (nearfield/plan.py)."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from nearfield.commands.described import MACHINE, RANKS_PER_NODE
from nearfield.commands.registry import command


@command
def plan(
    ranks: Annotated[int, typer.Option(min=0, help=f"Ranks of a node. {RANKS_PER_NODE}")] = 0,
    machine: Annotated[str, typer.Option(help=MACHINE)] = "here",
    pairs: Annotated[str, typer.Option(help="Whom each rank sends to: all, none or neighbours:N.")] = "all",
    collectives: Annotated[
        bool,
        typer.Option(
            help="Whether collectives meet arrays that peers cannot reach (static ones, of the stack)."
        ),
    ] = True,
    long: Annotated[
        bool,
        typer.Option(
            help="Whether there are messages beyond 16 KiB (1 KiB where ranks have CPUs of their own)."
        ),
    ] = True,
    communicators: Annotated[int, typer.Option(min=0, help="With collectives, beside MPI_COMM_WORLD.")] = 0,
    heap: Annotated[str, typer.Option(help="Large arrays of a rank's program: 64M.")] = "",
    windows: Annotated[str, typer.Option(help="Windows' memory of a rank.")] = "",
    alloc_mem: Annotated[str, typer.Option(help="MPI_Alloc_mem's of a rank.")] = "",
    job: Annotated[
        Optional[Path],
        typer.Option(
            help="For a program that has run: a file that NEARFIELD_STATS_FILE has had written, or the directory of all."
        ),
    ] = None,
    json: Annotated[bool, typer.Option(help="Print JSON.")] = False,
) -> None:
    """Plan memory: what Nearfield takes, and where it should lie.

    Says what fits where on a node, and what placement is advised (docs/placement.md).
    """
    from json import dumps

    from nearfield import plan as planning
    from nearfield.model import ranks_of_a_node
    from nearfield.statistics import read_statistics
    from nearfield.values import parse_bytes

    if job:
        made = planning.plan_job(read_statistics(job), machine)
    else:
        count = ranks_of_a_node(ranks, machine)
        given = {"heap": heap, "windows": windows, "alloc_mem": alloc_mem}
        values = {name: parse_bytes(text) for name, text in given.items() if text}
        values |= {"collectives": int(collectives), "long": int(long), "communicators": communicators}
        made = planning.make_plan(count, planning.partners_of(pairs, count), machine, **values)
    if json:
        typer.echo(dumps(made, indent=1))
    else:
        planning.show(made)
