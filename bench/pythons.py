"""Which Python has a package that a benchmark needs and `make setup` does not install."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path


def first_python(candidates: Iterable[str | None], asked: str) -> str | None:
    """The first of these Pythons that is there and runs the text `asked` without an error. None: none does."""
    for python in candidates:
        if not python or not Path(python).exists():
            continue
        if subprocess.run([python, "-c", asked], capture_output=True, timeout=120).returncode == 0:
            return python
    return None
