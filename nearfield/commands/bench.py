"""`nearfield bench`: operations (nearfield/bench.py) or an application (nearfield/apps.py), plain and under Nearfield."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from nearfield.commands.registry import command
from nearfield.hosts import HOSTS
from nearfield.operations import (
    AS_PROGRAMS,
    FINDS_NOTHING,
    LOOPS,
    OF_MESSAGES,
    ONE_SIDED,
    OPERATIONS,
    OWN_LOOP,
    PATTERNS,
    PROTOCOLS,
    TARGETS,
    WINDOWS,
)

OP = (
    f"Operations, separated by commas; also {', '.join(OF_MESSAGES)}; ibcast and the like are the non-blocking forms. Messages: {', '.join(PATTERNS)}. "
    f"As programs do: {', '.join(AS_PROGRAMS)}. Calls that find nothing: {', '.join(FINDS_NOTHING)}. "
    f"On windows: {', '.join(ONE_SIDED)}."
)


@command
def bench(
    op: Annotated[str, typer.Option(help=OP)] = OPERATIONS,
    ranks: Annotated[str, typer.Option(help="Numbers of ranks.")] = "2",
    sizes: Annotated[
        str, typer.Option(help="Bytes of a rank's vector or block: 8:4M (powers of two), or a list.")
    ] = "8:4M",
    hosts: Annotated[str, typer.Option(help=f"Some of {', '.join(HOSTS)}; intel is impi.")] = "mpich",
    buffers: Annotated[
        str,
        typer.Option(
            help="used (what is sent is rewritten before each call, what arrives is read; the time of both is"
            " subtracted), modified (rewritten only), warm (untouched), cold."
        ),
    ] = "used",
    seconds: Annotated[float, typer.Option(min=0, help="Time per operation, size and kind of buffer.")] = 1.0,
    quick: Annotated[bool, typer.Option(help="Every fourth power of two, 0.15 s each.")] = False,
    scan: Annotated[
        bool,
        typer.Option(
            help="Also the sizes beside each power of two and halfway to the next one; at the end the cells that take 1.2"
            " times as long as both of their neighbours."
        ),
    ] = False,
    algorithm: Annotated[str, typer.Option(help="As NEARFIELD_ALGORITHM.")] = "",
    heap: Annotated[str, typer.Option(help="shared or off: where the buffers lie.")] = "shared",
    floor: Annotated[bool, typer.Option(help="Also bare code on mapped memory, in turn.")] = False,
    loop: Annotated[
        str,
        typer.Option(
            help=f"How calls follow each other, some of {', '.join(LOOPS)}: as programs make them, or as other benchmarks do, on"
            " buffers that nobody touches (docs/results.md)."
        ),
    ] = OWN_LOOP,
    short: Annotated[
        int,
        typer.Option(
            min=0, help="Loops of so many calls, e.g. 100, timed from the first one on new communicators."
        ),
    ] = 0,
    protocol: Annotated[
        str, typer.Option(help=f"Messages: some of {', '.join(PROTOCOLS)}, one after the other.")
    ] = "auto",
    window: Annotated[
        str, typer.Option(help=f"One-sided: windows of some kinds: {', '.join(WINDOWS)}.")
    ] = "allocate",
    target: Annotated[
        str,
        typer.Option(
            help=f"One-sided, some of {', '.join(TARGETS)}: own (each rank's is the next one), one (rank 0 is everybody's,"
            " and what combines goes to the same place), apart (rank 0, places apart)."
        ),
    ] = "own,one",
    application: Annotated[
        str,
        typer.Option(
            "--app",
            help="An application instead, wall, CPU and communication time per loop: fft (3-D, in pencils), matmul, stencil,"
            " mesh (adaptive) or training (of a network).",
        ),
    ] = "",
    points: Annotated[
        str,
        typer.Option(
            help="Applications: points a side, rows of a matrix, cells a side of a block, channels; a list."
        ),
    ] = "",
    loops: Annotated[
        int,
        typer.Option(
            min=0, help="Applications: transforms there and back, products, sweeps or steps in a run."
        ),
    ] = 0,
    runs: Annotated[int, typer.Option(min=1, help="Applications: runs of each kind.")] = 3,
    parts: Annotated[
        bool, typer.Option(help="Applications: also with the heap alone, and with MPI alone.")
    ] = False,
    form: Annotated[
        str,
        typer.Option(
            help="matmul: some of bcast, allgather, allreduce; stencil: of messages, put, shared. All unless given."
        ),
    ] = "",
    panel: Annotated[int, typer.Option(min=1, help="matmul: width of the panels of the form bcast.")] = 256,
    nodes: Annotated[
        int,
        typer.Option(
            min=1,
            help="Over so many pretended nodes (docs/testing.md); of the nine collectives without scans also"
            " packets and bytes that cross, alone with --seconds 0.",
        ),
    ] = 1,
    delay: Annotated[
        float, typer.Option(min=0, help="Collectives over nodes: microseconds to another node.")
    ] = 0,
    rate: Annotated[
        float, typer.Option(min=0, help="Collectives over nodes: bits per second of a node.")
    ] = 0,
    shared_cpus: Annotated[
        bool, typer.Option(help="Collectives over nodes: each has all CPUs, not its part of them.")
    ] = False,
    beside: Annotated[
        str,
        typer.Option(
            help="Beside so many busy processes, N or N,kind: cpu (computes), memory (streams), waking (often)."
        ),
    ] = "0",
    torch: Annotated[
        bool,
        typer.Option(
            "--torch",
            help="PyTorch's backends nearfield and gloo instead of MPI: --op of allreduce, bcast, allgather, reduce_scatter,"
            " alltoall, barrier, ddp (a step of training), tensor-parallel (a token step of inference).",
        ),
    ] = False,
    json: Annotated[Optional[Path], typer.Option(help="Write the rows as JSON.")] = None,
    report: Annotated[Optional[Path], typer.Option(help="Write an HTML report with plots.")] = None,
    svg: Annotated[Optional[Path], typer.Option(help="Write one plot of all rows.")] = None,
) -> None:
    """Measure calls or applications, plain and under Nearfield.

    Calls of host and Nearfield are interleaved in one run of the same processes on the same buffers.
    """
    from nearfield import apps, torch_bench
    from nearfield.bench import run_bench, save
    from nearfield.beside import Beside
    from nearfield.hosts import host_names
    from nearfield.model import add_predictions
    from nearfield.nodes import internode_traffic
    from nearfield.nodes.bed import several_nodes
    from nearfield.outputs import PLOT, check_outputs
    from nearfield.scan import as_given, scanned, show_bumps
    from nearfield.summary import show_summary
    from nearfield.values import check_words, parse_ranks, parse_sizes

    check_outputs((json, report, svg), [PLOT] if report or svg else [])
    check_words([heap], ("shared", "off"), "heap")
    counts, names, neighbours = parse_ranks(ranks), host_names(hosts), Beside.parse(beside)
    if application:
        results = apps.compare(
            application,
            counts,
            names,
            parse_ranks(points, "points") if points else [],
            loops,
            runs,
            [name for name in form.split(",") if name],
            ["--panel", str(panel)] if application == "matmul" else [],
            nodes=nodes,
            heap=heap,
            modes=apps.MODES if parts else (apps.PLAIN, apps.BOTH),
            beside=neighbours,
        )
        apps.show(results)
        save(results, json, None, svg)
        return
    operations, lengths, each = op.split(","), parse_sizes(sizes, quick), 0.15 if quick else seconds
    if torch:
        of_torch = torch_bench.OPERATIONS if op == OPERATIONS else operations
        results = torch_bench.run_torch_bench(of_torch, counts, lengths, each, heap)
        torch_bench.show(results)
        save(results, json, None, None)
        return
    rows: list[dict] = []
    crossed: list[dict] = []
    failures: list[str] = []
    with several_nodes(nodes, delay, rate, not shared_cpus) as bed:
        measured = (scanned if scan else as_given)(operations, lengths) if each or not bed else []
        for group, of_group in measured:
            rows += run_bench(
                *(group, counts, of_group, names, buffers.split(","), each, algorithm, heap, floor),
                protocols=protocol.split(","),
                short=short,
                bed=bed,
                windows=window.split(","),
                targets=target.split(","),
                failures=failures,
                beside=neighbours,
                loops=loop.split(","),
            )
        if bed:
            crossed = internode_traffic.count(bed, operations, counts, lengths, names, algorithm, heap)
    error = add_predictions(rows)
    show_summary(rows)
    if scan:
        show_bumps(rows)
    internode_traffic.show(crossed)
    if error is not None:
        typer.echo(f"median error of the model: {error:.0%}", err=True)
    save(rows + crossed, json, None, None)
    save(rows, None, report, svg)
    if failures:
        raise ValueError("\n".join([f"{len(failures)} jobs failed", *failures]))
