"""Runs five example programs with and without Nearfield, then MPI operations by size, and writes one page with all results."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def options(parser: argparse.ArgumentParser) -> None:
    """What `nearfield demo` takes."""
    parser.add_argument("--out", type=Path, default=Path("report.html"), help="the page")
    parser.add_argument(
        "--full",
        action="store_true",
        help="also run the heap alone and MPI alone, other hosts, and operations with four ranks on each CPU",
    )


def main(asked: argparse.Namespace) -> None:
    """Runs it. Raises ValueError outside of a checkout: the programs are those of examples."""
    from nearfield.libraries import IS_CHECKOUT, ROOT
    from nearfield.outputs import PLOT, check_outputs

    if not IS_CHECKOUT:
        raise ValueError("the demo runs the programs in examples/, so it needs a checkout of the source")
    sys.path.append(str(ROOT))
    from bench.demo import run_demo

    check_outputs((asked.out, asked.out.with_suffix(".json")), [PLOT])
    run_demo(asked.out, asked.full)
