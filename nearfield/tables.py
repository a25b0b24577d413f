"""Tables: for people on a terminal, tab-separated below their titles where the output is read by programs."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence

CODES = {"bold": 1, "red": 31}
LEAST = 30  # characters of the last column, which a narrow terminal breaks


def styled(text: str, style: str | None) -> str:
    """The text as a terminal shows it bold or red; elsewhere as it is."""
    return f"\033[{CODES[style]}m{text}\033[0m" if style and sys.stdout.isatty() else text


def print_table(
    titles: Sequence[str], rows: Iterable[Sequence[str]], styles: Iterable[str | None] = (), title: str = ""
) -> None:
    """Prints rows of words; `styles`, one for each row, and `title` show on a terminal only."""
    lines = [titles, *rows]
    if not sys.stdout.isatty():
        for words in lines:
            print(*words, sep="\t")
        return
    if title:
        print(title)
    widths = [max(map(len, column)) for column in zip(*lines)][:-1]
    room = max(LEAST, shutil.get_terminal_size().columns - sum(widths) - 2 * len(widths))
    of_row = iter(["bold", *styles])
    for *words, last in lines:
        style = next(of_row, None)
        for piece in textwrap.wrap(last, room) or [""]:
            text = "  ".join([*map(str.ljust, words, widths), piece])
            print(styled(text.rstrip(), style))
            words = [""] * len(widths)


def print_columns(titles: Sequence[str], rows: Iterable[Sequence[str]], styles: Iterable[str | None]) -> None:
    """Prints rows of words below their titles, aligned to the right, on a terminal and elsewhere; `styles` show on a terminal only."""
    lines = [titles, *rows]
    widths = [max(map(len, column)) for column in zip(*lines)]
    for words, style in zip(lines, ["bold", *styles]):
        print(styled("  ".join(map(str.rjust, words, widths)), style))
