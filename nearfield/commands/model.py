"""`nearfield model`: what every algorithm is estimated to cost (nearfield/model.py, nearfield/simulate.py)."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from nearfield.commands.described import MACHINE, RANKS_PER_NODE
from nearfield.commands.registry import command


@command
def model(
    op: Annotated[str, typer.Argument(help="Collectives, separated by commas.")] = "allreduce",
    ranks: Annotated[
        str, typer.Option(help="Numbers of ranks: 2:192 (powers of two and the end), or a list.")
    ] = "2:32",
    sizes: Annotated[str, typer.Option(help="Bytes: 8:16M, or a list.")] = "8:16M",
    nodes: Annotated[
        str,
        typer.Option(
            help="Numbers of nodes, as --ranks: algorithms over nodes instead, of --ranks-per-node."
        ),
    ] = "",
    ranks_per_node: Annotated[int, typer.Option(min=0, help=RANKS_PER_NODE)] = 0,
    machine: Annotated[str, typer.Option(help=MACHINE)] = "here",
    calibrate: Annotated[
        bool,
        typer.Option(
            help="Measure this machine's figures first and store them; started by mpiexec on several nodes,"
            " those of the network, on each node."
        ),
    ] = False,
    constants: Annotated[
        bool, typer.Option(help="Print what estimates are made of and choices are made by instead.")
    ] = False,
    simulate: Annotated[
        bool, typer.Option(help="alltoall: every order in the machine's simulated caches instead.")
    ] = False,
    state: Annotated[str, typer.Option(help="Simulated buffers: live or warm.")] = "live",
    shift: Annotated[
        int, typer.Option(min=0, help="Simulated: bytes between the places of two ranks' buffers.")
    ] = 0,
    json: Annotated[Optional[Path], typer.Option(help="Write the cells as JSON.")] = None,
    svg: Annotated[Optional[Path], typer.Option("--svg", "--plot", help="Write a plot.")] = None,
) -> None:
    """Estimate what every algorithm costs, and which is chosen."""
    from json import dumps

    from nearfield import model as models
    from nearfield.job import present_job
    from nearfield.operations import WITH_ALGORITHMS
    from nearfield.outputs import check_outputs
    from nearfield.values import check_words, parse_ranks, parse_sizes

    check_outputs((json, svg))
    if constants:
        return _constants(json, svg)
    counts, lengths = parse_ranks(ranks), parse_sizes(sizes)
    if simulate:
        if op != "alltoall":
            raise ValueError(f"orders of alltoall are simulated, not of {op}")
        return _simulate(counts, lengths, machine, state, shift, json, svg)
    operations = check_words(op.split(","), WITH_ALGORITHMS, "collective with algorithms")
    over = parse_ranks(nodes, "nodes") if nodes else []
    if calibrate:
        stored = models.calibrate()
        if (job := present_job()) and job.rank > 0:
            return
        typer.echo(f"stored in {stored}", err=True)
    cells = []
    for name in operations:
        if over:
            each = models.ranks_of_a_node(ranks_per_node, machine)
            cells += models.predict_nodes(name, over, each, lengths, machine)
        else:
            cells += models.predict(name, counts, lengths, machine)
    (models.show_nodes if over else models.show)(cells)
    if json:
        json.write_text(dumps(cells, indent=1))
    if svg:
        models.plot(cells, svg)


def _constants(json: Optional[Path], svg: Optional[Path]) -> None:
    from json import dumps

    from nearfield import model as models

    if svg:
        raise ValueError("constants have no plot")
    rows = models.constants()
    models.show_constants(rows)
    if json:
        json.write_text(dumps(rows, indent=1))


def _simulate(
    counts: list[int],
    sizes: list[int],
    machine: str,
    state: str,
    shift: int,
    json: Optional[Path],
    svg: Optional[Path],
) -> None:
    from json import dumps

    from nearfield import simulate

    rows = simulate.simulate(counts, sizes, machine, state, shift)
    simulate.show(rows)
    if json:
        json.write_text("[\n" + ",\n".join(dumps(row) for row in rows) + "\n]\n")
    if svg:
        simulate.plot(rows, svg)
