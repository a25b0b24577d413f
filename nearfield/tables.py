"""Tables: for people on a terminal, tab-separated where the output is read by programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table


def print_table(
    titles: Sequence[str],
    rows: Iterable[Sequence[str]],
    styles: Iterable[str | None] = (),
    title: str = "",
    aligned: bool = False,
) -> None:
    """Prints rows of words; `styles`, one for each row, and `title` show on a terminal only. `aligned`: in columns below
    their titles elsewhere too."""
    console = Console(highlight=False)
    if not console.is_terminal:
        if aligned:
            rows = [titles, *rows]
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            rows = [[word.rjust(width) for word, width in zip(row, widths, strict=True)] for row in rows]
            print(*("  ".join(words) for words in rows), sep="\n")
            return
        for words in rows:
            print(*words, sep="\t")
        return
    table = Table(*titles, title=title or None)
    of_row = iter(styles)
    for words in rows:
        table.add_row(*words, style=next(of_row, None))
    console.print(table)
