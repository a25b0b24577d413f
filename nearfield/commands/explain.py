"""`nearfield explain`: what a call would take, and why (nearfield/explain.py)."""

from typing import Annotated, Optional

import typer

from nearfield.commands.described import MACHINE, RANKS_PER_NODE
from nearfield.commands.registry import command


@command
def explain(
    op: Annotated[str, typer.Argument(help="A collective, or message.")],
    ranks: Annotated[Optional[int], typer.Option(min=1, help="Number of ranks; 2 unless given.")] = None,
    bytes: Annotated[
        Optional[str], typer.Option(help="Of one rank's vector or block: 4096, 4K, 1M; 8 unless given.")
    ] = None,
    nodes: Annotated[int, typer.Option(min=1, help="Over so many nodes, of --ranks-per-node.")] = 1,
    ranks_per_node: Annotated[int, typer.Option(min=0, help=RANKS_PER_NODE)] = 0,
    machine: Annotated[str, typer.Option(help=MACHINE)] = "here",
    json: Annotated[bool, typer.Option(help="Print JSON.")] = False,
) -> None:
    """Explain which algorithm a call would take, and why.

    What the others would cost stands beside it.
    """
    from json import dumps

    from nearfield import explain as explaining
    from nearfield.model import ranks_of_a_node
    from nearfield.operations import COLLECTIVES
    from nearfield.values import check_words, parse_bytes

    check_words([op], (*COLLECTIVES, "message"), "collective")
    size = parse_bytes("8" if bytes is None else bytes)
    if bytes is not None and op == "barrier":
        typer.echo("--bytes does not apply: a barrier has no data", err=True)
    if ranks and (nodes > 1 or op == "message"):
        whose = "a message is between two ranks" if op == "message" else "--ranks-per-node says how many"
        typer.echo(f"--ranks does not apply: {whose}", err=True)
    if nodes > 1:
        each = ranks_of_a_node(ranks_per_node, machine)
        found = explaining.explain_nodes(op, nodes, each, size, machine)
    else:
        found = explaining.explain(op, ranks or 2, size, machine)
    if json:
        typer.echo(dumps(found, indent=1))
    else:
        (explaining.show_nodes if nodes > 1 else explaining.show)(found)
