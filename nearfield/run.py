"""`nearfield run` and `exec`, as far as they take Python: help, what is not understood, --host, --report and --trace. tools/run.cpp
does the rest."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

from nearfield.libraries import ROOT_TO_TELL, NotBuilt, program, with_nearfield
from nearfield.options import SETTINGS, SWITCHES, WrongOption, read_command, settings_of

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
USAGE_OF_EXEC = """\
Usage: nearfield exec [OPTIONS] PROGRAM ARGUMENTS...

Becomes a program with Nearfield: one rank, where the launcher's environment does not reach it.
`mpiexec -n 4 apptainer exec image.sif nearfield exec ./program`

  --stats, --stats-file FILE, --check, --log LEVEL, --log-file FILE, --algorithm TEXT, --heap WHICH
                    as of `nearfield run`
"""


def main(arguments: list[str], called: str) -> int:
    """Replaces this process by the launcher, or with `exec` by a program; returns an exit status only when that fails, or a report is
    made."""
    usage, more = (USAGE_OF_EXEC, ()) if called == "exec" else (USAGE, ("--host", "--report", "--trace"))
    try:
        asked = read_command(arguments, (*SETTINGS, *more), usage, SWITCHES)
    except WrongOption as error:
        return _fail(str(error), called)
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
        env["NEARFIELD_LIBDIR"] = with_nearfield(env)["NEARFIELD_LIBDIR"]  # or says what is wrong
        runner = [str(program("nearfield-run")), sys.executable, ROOT_TO_TELL, "last", "--", *command]
        if reporting:
            if not shutil.which(command[0], path=env.get("PATH")):
                raise ValueError(f"cannot start {command[0]}: there is no such program")
            return reporting.run(runner, env)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and programs would inherit that
        os.execve(runner[0], runner, env)
    except (NotBuilt, ValueError) as error:
        return _fail(str(error), called)
    except OSError as error:
        return _fail(f"cannot start {error.filename or command[0]}: {error.strerror}", called)


def _fail(text: str, called: str) -> int:
    print(f"nearfield {called}: {text}", file=sys.stderr)
    return 2
