"""Starts a program with Nearfield, as one rank. It is for ranks that the launcher's environment does not reach:
`mpiexec -n 4 apptainer exec image.sif nearfield exec ./program`
"""

from __future__ import annotations

import argparse

from nearfield.commands.run import main
from nearfield.settings import add_command, add_settings

__all__ = ["main", "options"]


def options(parser: argparse.ArgumentParser) -> None:
    """What `nearfield exec` takes."""
    add_settings(parser)
    add_command(parser, "PROGRAM ARGUMENTS...")
