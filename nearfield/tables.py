"""Tables: for people on a terminal, tab-separated where the output is read by programs."""

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
        for words in rows:
            print(*words, sep="\t")
        return
    table = Table(*titles, title=title or None)
    of_row = iter(styles)
    for words in rows:
        table.add_row(*words, style=next(of_row, None))
    console.print(table)
