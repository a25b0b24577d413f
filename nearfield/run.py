"""`nearfield run`, as far as it takes Python: help, what is not understood, --host, --report and --trace. tools/run.cpp does the rest."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

from nearfield.libraries import NotBuilt, program, with_nearfield
from nearfield.options import SETTINGS, WrongOption, read_command, settings_of

USAGE = """\
Usage: nearfield run [OPTIONS] LAUNCHER ARGUMENTS...

Runs a launcher (mpiexec, srun, a script around them) with Nearfield under its MPI programs. Where none of
them was served it says why when the launcher has ended, unless --log is error or off.

  --stats           print calls, bytes and time of every operation at the end
  --stats-file FILE write them, of each rank, as JSON; %r: rank, %p: process, %h: host
  --check           compare the calls of all ranks; report which differ instead of hanging
  --log LEVEL       off, error, warn, info or debug
  --log-file FILE   where the log goes; %h: host, %p: process, %r: rank
  --algorithm TEXT  force or exclude algorithms, e.g. "allreduce:partitioned;alltoall:^rounds"
  --heap WHICH      shared: large allocations of the program lie where peers
                    reach them (the default); off: the C library's own heap
  --report FILE     at the end, write what the program's calls of MPI did: a page,
                    FILE.html, and beside it the same as JSON
  --trace FILE      at the end, write its last calls one by one, as JSON for
                    Perfetto and Chrome; the page then says who waited for whom
  --host NAME       put an installed host's launcher and library first; `nearfield info` lists them
"""
SWITCHES = {"--stats": "NEARFIELD_STATS", "--check": "NEARFIELD_CHECK"}


def main(arguments: list[str]) -> int:
    """Replaces this process by the launcher; returns an exit status only when that fails, or a report is made."""
    try:
        asked = read_command(arguments, (*SETTINGS, "--host", "--report", "--trace"), USAGE, SWITCHES)
    except WrongOption as error:
        return _fail(str(error))
    if not asked:
        return 0
    options, command = asked
    try:
        env = dict(os.environ) | settings_of(options)
        env |= {SWITCHES[name]: "1" for name in options if name in SWITCHES}
        files = [Path(options[name]) if name in options else None for name in ("--report", "--trace")]
        reporting = None
        if any(files):
            from nearfield.reporting import Reporting

            reporting = Reporting(*files)
        with_nearfield(env)  # says what is wrong
        runner = [str(program("nearfield-run")), sys.executable, "last", "--", *command]
        if reporting:
            if not shutil.which(command[0], path=env.get("PATH")):
                raise ValueError(f"cannot start {command[0]}: there is no such program")
            return reporting.run(runner, env)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and programs would inherit that
        os.execve(runner[0], runner, env)
    except (NotBuilt, ValueError) as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"cannot start {error.filename or command[0]}: {error.strerror}")


def _fail(text: str) -> int:
    print(f"nearfield run: {text}", file=sys.stderr)
    return 2
