"""`nearfield survey`: measures a machine, and makes a page of what was measured on one or several (nearfield/survey)."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from nearfield.commands.registry import command


@command
def survey(
    archives: Annotated[Optional[list[Path]], typer.Argument(help="Of surveys, for --report.")] = None,
    report: Annotated[
        bool, typer.Option("--report", help="Write a page of one archive or several instead.")
    ] = False,
    out: Annotated[
        Optional[Path],
        typer.Option(
            help="The directory of the survey; one that is there goes on. With --report the page, by default survey.html."
        ),
    ] = None,
    minutes: Annotated[
        float, typer.Option(min=0.01, help="About 10, 30 or 120: the longer, the more sizes and hosts.")
    ] = 10,
    hosts: Annotated[
        str, typer.Option(help="MPIs, the first of which measures algorithms; by default all that are there.")
    ] = "",
    op: Annotated[str, typer.Option(help="Collectives; by default nine.")] = "",
    ranks: Annotated[str, typer.Option(help="Also so many ranks on all CPUs, which then share them.")] = "",
) -> None:
    """Survey a machine: distances, copies and collectives.

    Needs no root and takes the minutes that it is given; stopped, it goes on where it was. What it writes is one archive, without
    names of machines, users and files, and --report makes a page of one or several.
    """
    from nearfield.hosts import find_hosts, host_names
    from nearfield.operations import WITH_ALGORITHMS
    from nearfield.values import check_words, parse_ranks

    if report:
        _write_page(archives or [], out or Path("survey.html"))
        return
    if archives:
        raise ValueError("archives are for --report")
    if not out:
        raise ValueError("--out names a directory for the survey; --report makes a page of archives")
    from nearfield.survey.running import Survey
    from nearfield.survey.steps import COLLECTIVES

    names = check_words(host_names(hosts) if hosts else list(find_hosts()), find_hosts(), "host")
    operations = check_words(
        op.split(",") if op else COLLECTIVES, WITH_ALGORITHMS, "collective with algorithms"
    )
    made = Survey(out, minutes, names, parse_ranks(ranks) if ranks else [], operations)
    for text in made.remarks():
        typer.echo(f"nearfield survey: {text}", err=True)
    archive = made.run()
    if missing := made.missing():
        typer.echo(
            f"nearfield survey: {len(missing)} of {len(made.steps)} steps are not done; the same command goes on with"
            " them, with --minutes above those used",
            err=True,
        )
    typer.echo(f"{archive}: README.txt in it says what it contains")


def _write_page(archives: list[Path], page: Path) -> None:
    from nearfield.outputs import PAGE, check_outputs
    from nearfield.survey.archive import read

    if not archives:
        raise ValueError("--report makes a page of archives: name one or several")
    check_outputs([page], [PAGE])
    from nearfield.survey.page import write_survey

    write_survey([read(path) for path in archives], page)
    typer.echo(f"report: {page}")
