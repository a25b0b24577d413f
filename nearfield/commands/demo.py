"""`nearfield demo`: what programs gain here (nearfield/demo.py)."""

from pathlib import Path
from typing import Annotated

import typer

from nearfield.commands.registry import command


@command
def demo(
    out: Annotated[Path, typer.Option(help="The report.")] = Path("report.html"),
    quick: Annotated[bool, typer.Option(help="Two ranks only, one run each way.")] = False,
) -> None:
    """Show what five programs gain here, when, why and how safely.

    Then operations by size; a report of it all goes to one page.
    """
    from nearfield.demo import run_demo
    from nearfield.outputs import PLOT, check_outputs

    check_outputs((out, out.with_suffix(".json")), [PLOT])
    run_demo(out, quick)
