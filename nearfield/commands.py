"""The subcommands besides `run` and `compare`, by Typer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from nearfield import __version__
from nearfield.hosts import HOSTS, host_names
from nearfield.libraries import NotBuilt
from nearfield.operations import MOVES, OF_MESSAGES, ON_WORDS, OPERATIONS, SYNCHRONIZES

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Makes MPI fast inside a node. `nearfield run --help` tells how to run a program, `nearfield compare --help` how to see what it would gain.",
)
MESSAGES = (
    "Messages: latency, bw, bibw, message-rate, multi-latency, multi-pair, ddt-vector, ddt-indexed, ddt-subarray. "
    "As programs do: sendrecv, waitall, waits, anysource, testloop, halo, waitany, probe. "
    "Calls that find nothing: test, testall, testany, iprobe."
)
ON_WINDOWS = "On windows: " + ", ".join((*MOVES, *ON_WORDS, *SYNCHRONIZES)) + "."
RANKS_PER_NODE = "By default as many as the machine has CPUs."


@app.command()
def run() -> None:
    """Run a launcher with Nearfield under its MPI programs: nearfield run mpiexec -n 4 ./program."""
    # Answered in cli.py before Typer is loaded; listed here so that --help names it.


@app.command()
def compare() -> None:
    """What a command would gain, and by what: nearfield compare mpiexec -n 4 ./program."""
    # As run.


@app.command()
def check(
    programs: Annotated[
        list[str], typer.Argument(help="Programs or scripts, as a launcher would be given them.")
    ],
    host: Annotated[
        str, typer.Option(help="As of `nearfield run`: an installed host whose library comes first.")
    ] = "",
) -> None:
    """Whether programs would be served by `nearfield run`, by which MPI and build of Nearfield, and why not.

    The exit status is 0 where all of them are, or may be: a program that opens its MPI while it runs tells only then.
    """
    from nearfield.check import check as judge
    from nearfield.hosts import environment_of

    def work() -> None:
        env = dict(os.environ) | (environment_of(host_names(host)[0]) if host else {})
        verdicts = [judge(program, env) for program in programs]
        for verdict in verdicts:
            typer.echo(verdict)
        if not all(verdict.served for verdict in verdicts):
            raise typer.Exit(1)

    _guard(work)


@app.command()
def version() -> None:
    """Print the version."""
    print(__version__)


@app.command()
def info(
    json: Annotated[bool, typer.Option(help="Print JSON.")] = False,
    settings: Annotated[
        bool, typer.Option(help="Print the settings only, as docs/settings.md has them.")
    ] = False,
) -> None:
    """Topology, CPUs really available, which ways of reaching memory work here and why others do not."""
    from nearfield.info import settings_table, show

    _guard(lambda: print(settings_table()) if settings else show(json))


@app.command()
def bench(
    op: Annotated[
        str,
        typer.Option(
            help=f"Operations, separated by commas; also {', '.join(OF_MESSAGES)}. {MESSAGES} {ON_WINDOWS}"
        ),
    ] = OPERATIONS,
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
    seconds: Annotated[float, typer.Option(help="Time per operation, size and kind of buffer.")] = 1.0,
    quick: Annotated[bool, typer.Option(help="Every fourth power of two, 0.15 s each.")] = False,
    algorithm: Annotated[str, typer.Option(help="As NEARFIELD_ALGORITHM.")] = "",
    heap: Annotated[str, typer.Option(help="shared or off: where the buffers lie.")] = "shared",
    floor: Annotated[bool, typer.Option(help="Also bare code on mapped memory, in turn.")] = False,
    short: Annotated[
        int,
        typer.Option(help="Loops of so many calls, e.g. 100, timed from the first one on new communicators."),
    ] = 0,
    protocol: Annotated[
        str,
        typer.Option(help="Messages: queue, fastbox, copy-buffers, cma, mapped, auto, one after the other."),
    ] = "",
    window: Annotated[
        str, typer.Option(help="One-sided: windows of some kinds: create, allocate, shared, dynamic.")
    ] = "allocate",
    target: Annotated[
        str,
        typer.Option(
            help="One-sided: own (each rank's is the next one), one (rank 0 is everybody's, and what combines goes to"
            " the same place), apart (rank 0, places apart)."
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
        int, typer.Option(help="Applications: transforms there and back, products, sweeps or steps in a run.")
    ] = 0,
    runs: Annotated[int, typer.Option(help="Applications: runs of each kind.")] = 3,
    parts: Annotated[
        bool, typer.Option(help="Applications: also with the heap alone, and with MPI alone.")
    ] = False,
    form: Annotated[
        str,
        typer.Option(
            help="matmul: some of bcast, allgather, allreduce; stencil: of messages, put, shared. All unless given."
        ),
    ] = "",
    panel: Annotated[int, typer.Option(help="matmul: width of the panels of the form bcast.")] = 256,
    nodes: Annotated[
        int,
        typer.Option(
            help="Over so many pretended nodes (docs/testing.md); of the nine collectives without scans also"
            " packets and bytes that cross, alone with --seconds 0."
        ),
    ] = 1,
    delay: Annotated[float, typer.Option(help="Collectives over nodes: microseconds to another node.")] = 0,
    rate: Annotated[float, typer.Option(help="Collectives over nodes: bits per second of a node.")] = 0,
    shared_cpus: Annotated[
        bool, typer.Option(help="Collectives over nodes: each has all CPUs, not its part of them.")
    ] = False,
    beside: Annotated[
        str,
        typer.Option(
            help="Beside so many busy processes, N or N,kind: cpu (computes), memory (streams), waking (often)."
        ),
    ] = "0",
    json: Annotated[Path | None, typer.Option(help="Write the rows as JSON.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report with plots.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write one plot of all rows.")] = None,
) -> None:
    """Compare host and Nearfield, interleaved in one run of the same processes on the same buffers."""
    from nearfield import crossing
    from nearfield.bench import parse_ranks, parse_sizes, run_bench, save
    from nearfield.beside import Beside
    from nearfield.model import add_predictions
    from nearfield.nodes import several_nodes
    from nearfield.outputs import check_outputs
    from nearfield.summary import show_summary

    def work() -> None:
        check_outputs((json, report, svg))
        neighbours = Beside.parse(beside)
        if application:
            from nearfield import apps

            sides = [int(side) for side in points.split(",") if side]
            forms = [name for name in form.split(",") if name]
            options = ["--panel", str(panel)] if application == "matmul" else []
            results = apps.compare(
                *(application, parse_ranks(ranks), host_names(hosts), sides, loops, runs, forms, options),
                nodes=nodes,
                heap=heap,
                modes=apps.MODES if parts else (apps.PLAIN, apps.BOTH),
                beside=neighbours,
            )
            apps.show(results)
            save(results, json, None, None)
            return
        operations, counts, lengths = op.split(","), parse_ranks(ranks), parse_sizes(sizes, quick)
        names, each = host_names(hosts), 0.15 if quick else seconds
        rows: list[dict] = []
        crossed: list[dict] = []
        failures: list[str] = []
        with several_nodes(nodes, delay, rate, not shared_cpus) as bed:
            if each or not bed:
                rows = run_bench(
                    *(operations, counts, lengths, names, buffers.split(","), each, algorithm, heap, floor),
                    protocols=protocol.split(",") if protocol else None,
                    loop=short,
                    bed=bed,
                    windows=window.split(","),
                    targets=target.split(","),
                    failures=failures,
                    beside=neighbours,
                )
            if bed:
                crossed = crossing.count(bed, operations, counts, lengths, names, algorithm, heap)
        error = add_predictions(rows)
        show_summary(rows)
        crossing.show(crossed)
        if error is not None:
            typer.echo(f"median error of the model: {error:.0%}", err=True)
        save(rows + crossed, json, None, None)
        save(rows, None, report, svg)
        if failures:
            raise ValueError("\n".join([f"{len(failures)} jobs failed", *failures]))

    _guard(work)


@app.command()
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
    ranks_per_node: Annotated[int, typer.Option(help=RANKS_PER_NODE)] = 0,
    machine: Annotated[str, typer.Option(help="here, a preset (epyc-2x96, knl-64) or a file.")] = "here",
    calibrate: Annotated[
        bool,
        typer.Option(
            help="Measure this machine's figures first and store them; started by mpiexec on several nodes,"
            " those of the network, on each node."
        ),
    ] = False,
    simulate: Annotated[
        bool, typer.Option(help="alltoall: every order in the machine's simulated caches instead.")
    ] = False,
    state: Annotated[str, typer.Option(help="Simulated buffers: live or warm.")] = "live",
    shift: Annotated[
        int, typer.Option(help="Simulated: bytes between the places of two ranks' buffers.")
    ] = 0,
    json: Annotated[Path | None, typer.Option(help="Write the cells as JSON.")] = None,
    svg: Annotated[Path | None, typer.Option("--svg", "--plot", help="Write a plot.")] = None,
) -> None:
    """What every algorithm is estimated to cost, and which one would be chosen."""
    from json import dumps

    from nearfield import model as models
    from nearfield import simulate as simulating
    from nearfield.bench import parse_ranks, parse_sizes
    from nearfield.job import present_job
    from nearfield.outputs import check_outputs

    def work() -> None:
        check_outputs((json, svg))
        if simulate:
            if op != "alltoall":
                raise ValueError(f"orders of alltoall are simulated, not of {op}")
            rows = simulating.simulate(parse_ranks(ranks), parse_sizes(sizes), machine, state, shift)
            simulating.show(rows)
            if json:
                json.write_text("[\n" + ",\n".join(dumps(row) for row in rows) + "\n]\n")
            if svg:
                simulating.plot(rows, svg)
            return
        if calibrate:
            stored = models.calibrate()
            if (job := present_job()) and job.rank > 0:
                return
            typer.echo(f"stored in {stored}", err=True)
        cells = []
        for name in op.split(","):
            if nodes:
                each = models.ranks_of_a_node(ranks_per_node, machine)
                cells += models.predict_nodes(name, parse_ranks(nodes), each, parse_sizes(sizes), machine)
            else:
                cells += models.predict(name, parse_ranks(ranks), parse_sizes(sizes), machine)
        (models.show_nodes if nodes else models.show)(cells)
        if json:
            json.write_text(dumps(cells, indent=1))
        if svg:
            models.plot(cells, svg)

    _guard(work)


@app.command()
def explain(
    op: Annotated[str, typer.Argument(help="A collective, or message.")],
    ranks: Annotated[int, typer.Option(help="Number of ranks.")] = 2,
    bytes: Annotated[str, typer.Option(help="Of one rank's vector or block: 4096, 4K, 1M.")] = "8",
    nodes: Annotated[int, typer.Option(help="Over so many nodes, of --ranks-per-node.")] = 1,
    ranks_per_node: Annotated[int, typer.Option(help=RANKS_PER_NODE)] = 0,
    machine: Annotated[str, typer.Option(help="here, a preset (epyc-2x96, knl-64) or a file.")] = "here",
    json: Annotated[bool, typer.Option(help="Print JSON.")] = False,
) -> None:
    """Which algorithm a call would take, why, and what the others would cost."""
    from json import dumps

    from nearfield import explain as explaining
    from nearfield.bench import parse_sizes
    from nearfield.model import ranks_of_a_node

    def work() -> None:
        size = parse_sizes(bytes)[0]
        if nodes > 1:
            each = ranks_of_a_node(ranks_per_node, machine)
            found = explaining.explain_nodes(op, nodes, each, size, machine)
        else:
            found = explaining.explain(op, ranks, size, machine)
        if json:
            typer.echo(dumps(found, indent=1))
        else:
            (explaining.show_nodes if nodes > 1 else explaining.show)(found)

    _guard(work)


@app.command()
def plan(
    ranks: Annotated[int, typer.Option(help=f"Ranks of a node. {RANKS_PER_NODE}")] = 0,
    machine: Annotated[str, typer.Option(help="here, a preset (epyc-2x96, knl-64) or a file.")] = "here",
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
    communicators: Annotated[int, typer.Option(help="With collectives, beside MPI_COMM_WORLD.")] = 0,
    heap: Annotated[str, typer.Option(help="Large arrays of a rank's program: 64M.")] = "",
    windows: Annotated[str, typer.Option(help="Windows' memory of a rank.")] = "",
    alloc_mem: Annotated[str, typer.Option(help="MPI_Alloc_mem's of a rank.")] = "",
    job: Annotated[
        Path | None,
        typer.Option(
            help="For a program that has run: a file that NEARFIELD_STATS_FILE has had written, or the directory of all."
        ),
    ] = None,
    json: Annotated[bool, typer.Option(help="Print JSON.")] = False,
) -> None:
    """What Nearfield takes of a node's memory, what fits where, and what placement is advised (docs/placement.md)."""
    from json import dumps

    from nearfield import plan as planning
    from nearfield.bench import parse_sizes
    from nearfield.model import ranks_of_a_node
    from nearfield.statistics import read_statistics

    def work() -> None:
        if job:
            made = planning.plan_job(read_statistics(job), machine)
        else:
            count = ranks_of_a_node(ranks, machine)
            given = {"heap": heap, "windows": windows, "alloc_mem": alloc_mem}
            values = {name: parse_sizes(text)[0] for name, text in given.items() if text}
            values |= {"collectives": int(collectives), "long": int(long), "communicators": communicators}
            made = planning.make_plan(count, planning.partners_of(pairs, count), machine, **values)
        if json:
            typer.echo(dumps(made, indent=1))
        else:
            planning.show(made)

    _guard(work)


@app.command()
def tune(
    op: Annotated[str, typer.Option(help="Collectives, separated by commas.")] = OPERATIONS,
    ranks: Annotated[str, typer.Option(help="Numbers of ranks; by default as many as there are CPUs.")] = "",
    sizes: Annotated[str, typer.Option(help="Bytes: 8:4M (powers of two), or a list.")] = "8:4M",
    host: Annotated[str, typer.Option(help="The host whose launcher starts the ranks.")] = "mpich",
    seconds: Annotated[float, typer.Option(help="Time per operation and size.")] = 0.3,
    out: Annotated[Path | None, typer.Option(help="The file; by default where ranks look for it.")] = None,
) -> None:
    """Measure which algorithms are fastest here and write a file for NEARFIELD_CHOOSE=file.

    Over nodes nothing is tuned beforehand: jobs try what there is in their first calls (NEARFIELD_CHOOSE=trial).
    """
    from nearfield import tune as tuning
    from nearfield.bench import parse_ranks, parse_sizes
    from nearfield.outputs import check_outputs

    def work() -> None:
        check_outputs([out])
        counts = parse_ranks(ranks) if ranks else [max(2, len(os.sched_getaffinity(0)))]
        path = out or tuning.stored_tuning()
        cells = tuning.tune(op.split(","), counts, parse_sizes(sizes), host, seconds, path)
        typer.echo(f"{len(cells)} cells in {path}; NEARFIELD_CHOOSE=file uses them", err=True)

    _guard(work)


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="What `nearfield run --report` has stored beside its page.")],
    out: Annotated[
        Path | None, typer.Option(help="The page; by default beside it, of the same name.")
    ] = None,
) -> None:
    """The page of a run again, from its JSON."""
    from nearfield import recording
    from nearfield import report as pages

    def work() -> None:
        found = recording.load(run)
        page = out or run.with_suffix(".html")
        try:
            pages.write_page(found, page)
        except OSError as error:
            raise ValueError(f"cannot write {page}: {error.strerror}") from None
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{run} is damaged: {type(error).__name__} {error}") from None
        typer.echo(f"report: {page}")

    _guard(work)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The report.")] = Path("report.html"),
    quick: Annotated[bool, typer.Option(help="Two ranks only, one run each way.")] = False,
) -> None:
    """What programs gain, when, why, and whether their results stay the same: five programs, then operations by size."""
    from nearfield.demo import run_demo
    from nearfield.outputs import check_outputs

    def work() -> None:
        check_outputs((out, out.with_suffix(".json")))
        run_demo(out, quick)

    _guard(work)


def _guard(work) -> None:
    """Turns expected failures into a line and exit status 2."""
    try:
        work()
    except OSError as error:
        if not error.filename:
            raise
        typer.echo(f"nearfield: {error.filename}: {error.strerror}", err=True)
        raise typer.Exit(2) from None
    except (NotBuilt, ValueError) as error:
        typer.echo(f"nearfield: {error}", err=True)
        raise typer.Exit(2) from None
