"""Checks, before long work begins, whether the files can be written that it writes at its end."""

from __future__ import annotations

import errno
import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path

# Packages of the extra `report` by what they are needed for; plots are in pages of `bench` and `demo`.
PAGE, PLOT = "jinja2", "matplotlib"
NEEDED = {".html": (PAGE,), ".htm": (PAGE,), ".svg": (PLOT,)}


def need(package: str) -> None:
    """Raises ValueError where a package of the extra `report` is not there."""
    if not importlib.util.find_spec(package):
        raise ValueError(
            f"pages and plots need {package}: pip install 'nearfield[report]', or {package} itself"
        )


def check_outputs(paths: Iterable[Path | None], packages: Iterable[str] = ()) -> None:
    """Raises ValueError if one of the files cannot be written, if two of them are the same, or if one of `packages`, or a package that
    a file needs by its ending, is not installed. Creates no file."""
    seen: set[Path] = set()
    for path in filter(None, paths):
        for package in (*NEEDED.get(path.suffix, ()), *packages):
            need(package)
        if why := _obstacle(path):
            raise ValueError(f"cannot write {path}: {why}")
        if path.resolve() in seen:
            raise ValueError(f"cannot write {path}: the command would write two things to this file")
        seen.add(path.resolve())


def _obstacle(path: Path) -> str | None:
    if path.is_dir():
        return os.strerror(errno.EISDIR)
    parent = path.resolve().parent
    if not parent.is_dir():
        return f"there is no directory {parent}"
    if not os.access(path if path.exists() else parent, os.W_OK):
        return os.strerror(errno.EACCES)
    return None
