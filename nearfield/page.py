"""Writes pages by the templates in nearfield/templates, each a self-contained HTML file. The templates escape all text."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from nearfield import __version__
from nearfield.libraries import PACKAGE, ROOT


@dataclass(frozen=True)
class Cell:
    """A cell with style: `mark` is its class (worse, faint), `depth` a shade from 0 to 1; the text `spread` follows its text."""

    text: str
    mark: str = ""
    depth: float | None = None
    spread: str = ""


@dataclass(frozen=True)
class Table:
    """A table; columns whose numbers are in `words` are aligned to the left."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    words: Collection[int] = (0,)


def ratio_cell(ratio: float) -> Cell:
    """Nearfield's time by the host's, marked where it is slower."""
    return Cell(f"{ratio:.2f}", "worse" if ratio > 1.05 else "")


@functools.cache
def _templates() -> Environment:
    return Environment(
        loader=FileSystemLoader([PACKAGE / "templates", ROOT / "bench"]),  # of a checkout also the demo's
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def write_page(path: Path, template: str, **values: object) -> None:
    """Writes the page to `path`, in UTF-8. Texts of ranks may have other bytes, which Python reads by surrogateescape; they are replaced."""
    text = _templates().get_template(template).render(version=__version__, **values)
    path.write_text(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), encoding="utf-8")
