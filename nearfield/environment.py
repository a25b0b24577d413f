"""`nearfield env`: what `nearfield run` would set, for a job script to set by itself."""

from __future__ import annotations

import os
import shlex
import sys

from nearfield.libraries import NotBuilt, what_loads
from nearfield.options import SETTINGS, SWITCHES, WrongOption, read_options, settings_of

USAGE = """\
Usage: nearfield env [OPTIONS]

Prints what has Nearfield serve whatever is started from then on: eval "$(nearfield env)" in a job script.

  --csh             for csh and tcsh: eval `nearfield env --csh`
  --stats, --stats-file FILE, --check, --log LEVEL, --log-file FILE, --algorithm TEXT, --heap WHICH
                    as of `nearfield run`
"""


def main(arguments: list[str], called: str) -> int:
    """Prints a line for each variable; the exit status."""
    try:
        options, rest = read_options(arguments, SETTINGS, (*SWITCHES, "--csh"))
        if "--help" in options:
            print(USAGE, end="")
            return 0
        if rest:
            raise WrongOption(f"takes no command: {' '.join(rest)}; `nearfield exec` starts one")
        asked = settings_of(options) | {SWITCHES[switch]: "1" for switch in options if switch in SWITCHES}
        settings = asked | what_loads(dict(os.environ) | asked)
    except (NotBuilt, ValueError, WrongOption) as error:
        print(f"nearfield {called}: {error}", file=sys.stderr)
        return 2
    for variable, value in settings.items():
        # The variables' names are ours; csh expands ! in quotes as well.
        quoted = shlex.quote(value)
        if "--csh" in options:
            print(f"setenv {variable} {quoted.replace('!', chr(92) + '!')};")
        else:
            print(f"export {variable}={quoted}")
    return 0
