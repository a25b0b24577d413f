"""Calling the command."""

import contextlib
import io
import os
import subprocess
from unittest import mock

from nearfield.cli import call
from tests.mpi.jobs import ROOT, Completed

COMMAND = str(ROOT / "build/release/bin/nearfield")


def nearfield(*arguments: str, **env: str) -> Completed:
    """What the command says and returns: in this process, but for those that become something else or start it."""
    if arguments[0] in ("run", "compare", "check"):
        process = subprocess.run(
            [COMMAND, *arguments], env={**os.environ, **env}, capture_output=True, text=True, timeout=60
        )
        return Completed(process.returncode, process.stdout, process.stderr, False)
    out, err = io.StringIO(), io.StringIO()
    with mock.patch.dict(os.environ, env), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = call(list(map(str, arguments)))
        except SystemExit as ended:
            status = int(ended.code or 0)
    return Completed(status, out.getvalue(), err.getvalue(), False)
