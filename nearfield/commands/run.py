"""Starts a launcher (mpiexec, srun, or a script around them) and loads Nearfield into its MPI programs. If Nearfield served none of them, it
says why when the launcher has ended, unless --log is error or off.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
from pathlib import Path

from nearfield.libraries import command, with_nearfield
from nearfield.settings import add_command, add_host, add_settings, settings_of

# tools/run.cpp does without Python what it can; here are help, what is not understood, --host, --report and --trace.


def options(parser: argparse.ArgumentParser) -> None:
    """What `nearfield run` takes."""
    add_settings(parser)
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="at the end, write a page on the program's MPI calls, and the same data as JSON beside it; FILE ends in .html",
    )
    parser.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="at the end, write the program's last calls one by one, as JSON for Perfetto and Chrome; the page of --report then says who waited for whom",
    )
    add_host(parser)
    add_command(parser, "LAUNCHER ARGUMENTS...")


def main(asked: argparse.Namespace) -> int:
    """Replaces this process by the launcher, or by a program; returns an exit status only where a report is made. Raises ValueError,
    NotBuilt."""
    env = dict(os.environ) | settings_of(asked)
    files = [getattr(asked, name, None) for name in ("report", "trace")]
    reporting = None
    if any(files):
        from nearfield.reporting import Reporting

        reporting = Reporting(*files)
    env["NEARFIELD_LIBDIR"] = with_nearfield(env)["NEARFIELD_LIBDIR"]  # or says what is wrong
    runner = [str(command()), "last", "--", *asked.command]
    if reporting:
        if not shutil.which(asked.command[0], path=env.get("PATH")):
            raise ValueError(f"cannot start {asked.command[0]}: there is no such program")
        return reporting.run(runner, env)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and programs would inherit that
    os.execve(runner[0], runner, env)
