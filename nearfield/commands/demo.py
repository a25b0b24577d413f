"""Shows what five programs gain here, when, why and how safely; then operations by size. A report of it all goes to one page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def options(parser: argparse.ArgumentParser) -> None:
    """What `nearfield demo` takes."""
    parser.add_argument("--out", type=Path, default=Path("report.html"), help="the report")
    parser.add_argument("--quick", action="store_true", help="two ranks only, one run each way")


def main(asked: argparse.Namespace) -> None:
    """Runs it. Raises ValueError outside of a checkout: the programs are those of examples."""
    from nearfield.libraries import IS_CHECKOUT, ROOT
    from nearfield.outputs import PLOT, check_outputs

    if not IS_CHECKOUT:
        raise ValueError("the demo runs programs of the source (examples), in a checkout only")
    sys.path.append(str(ROOT))
    from bench.demo import run_demo

    check_outputs((asked.out, asked.out.with_suffix(".json")), [PLOT])
    run_demo(asked.out, asked.quick)
