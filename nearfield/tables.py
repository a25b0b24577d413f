"""Tables: for people on a terminal, tab-separated below their titles where the output is read by programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table


def print_table(
    titles: Sequence[str], rows: Iterable[Sequence[str]], styles: Iterable[str | None] = (), title: str = ""
) -> None:
    """Prints rows of words; `styles`, one for each row, and `title` show on a terminal only."""
    console = Console(highlight=False)
    if not console.is_terminal:
        for words in (titles, *rows):
            print(*words, sep="\t")
        return
    table = Table(*titles, title=title or None)
    of_row = iter(styles)
    for words in rows:
        table.add_row(*words, style=next(of_row, None))
    console.print(table)


def print_columns(titles: Sequence[str], rows: Iterable[Sequence[str]], styles: Iterable[str | None]) -> None:
    """Prints rows of words below their titles, aligned to the right, wherever it goes; `styles` show on a terminal."""
    console = Console(highlight=False, soft_wrap=True)
    lines = [titles, *rows]
    widths = [max(map(len, column)) for column in zip(*lines)]
    for words, style in zip(lines, ["bold", *styles]):
        text = "  ".join(word.rjust(width) for word, width in zip(words, widths))
        console.print(text, style=style, markup=False)
