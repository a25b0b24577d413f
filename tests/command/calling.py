"""Calling the command."""

import os
import subprocess

from typer.testing import CliRunner

from nearfield.commands import app
from tests.mpi.jobs import ROOT, Completed

COMMAND = str(ROOT / "scripts/nearfield")


def nearfield(*arguments: str, **env: str) -> Completed:
    """What the command says and returns: in this process, but for those that take a launcher's command line."""
    if arguments[0] in ("run", "compare", "check"):
        process = subprocess.run(
            [COMMAND, *arguments], env={**os.environ, **env}, capture_output=True, text=True, timeout=60
        )
        return Completed(process.returncode, process.stdout, process.stderr, False)
    done = CliRunner().invoke(app, arguments, env=env)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Completed(done.exit_code, done.stdout, done.stderr, False)
