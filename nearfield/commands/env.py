"""Prints the variables that load Nearfield into every program started afterwards. In a job script: eval "$(nearfield env)"."""

from __future__ import annotations

import argparse
import os
import shlex

from nearfield.libraries import what_loads
from nearfield.settings import add_settings, settings_of


def options(parser: argparse.ArgumentParser) -> None:
    """What `nearfield env` takes."""
    parser.add_argument("--csh", action="store_true", help="for csh and tcsh: eval `nearfield env --csh`")
    add_settings(parser)


def main(asked: argparse.Namespace) -> None:
    """Prints a line for each variable. Raises NotBuilt, ValueError."""
    given = settings_of(asked)
    for variable, value in (given | what_loads(dict(os.environ) | given)).items():
        # The variables' names are ours; csh expands ! in quotes as well.
        quoted = shlex.quote(value)
        if asked.csh:
            print(f"setenv {variable} {quoted.replace('!', chr(92) + '!')};")
        else:
            print(f"export {variable}={quoted}")
