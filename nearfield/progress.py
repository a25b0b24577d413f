"""What long work is at: on a terminal one line that is written anew, elsewhere a line for each step."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

Each = TypeVar("Each")


class Progress:
    """`total` steps, 0 where nobody counts; a context, at whose end the line goes."""

    def __init__(self, total: float = 0, silent: bool = False) -> None:
        self.total, self.silent, self.text, self.done = total, silent, "", 0.0
        self._begun, self._terminal = time.monotonic(), sys.stderr.isatty()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._write("")

    def begin(self, text: str) -> None:
        """What comes next."""
        self.text = text
        if not self._terminal and not self.silent:
            print(text, file=sys.stderr, flush=True)
        self.at(self.done)

    def at(self, done: float, more: str = "") -> None:
        """So many steps are done."""
        self.done = done
        seconds = int(time.monotonic() - self._begun)
        counted = f"{done:.0f}/{self.total:.0f}, {seconds // 60}:{seconds % 60:02}  " if self.total else ""
        self._write(f"{counted}{self.text}{more}")

    def _write(self, line: str) -> None:
        if self._terminal and not self.silent:
            print(f"\r{line}\033[K", end="", file=sys.stderr, flush=True)


def tracked(steps: Sequence[Each], what: str) -> Iterator[Each]:
    """The steps one after the other, counted; elsewhere than on a terminal nothing is said."""
    with Progress(len(steps), silent=not sys.stderr.isatty()) as progress:
        progress.begin(what)
        for number, step in enumerate(steps):
            yield step
            progress.at(number + 1)
