"""The tables of MPI's functions that scripts write out of others are what these scripts write."""

import subprocess
import sys

from tests.mpi.jobs import ROOT


def test_roles_of_arguments_are_what_the_standard_says() -> None:
    words = [sys.executable, str(ROOT / "scripts/functions.py"), "--check"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
