"""Shows the progress of long work: on a terminal in one line that is rewritten, elsewhere in a line for each step."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

Each = TypeVar("Each")


class Progress:
    """A context, at whose end the line is erased. `total`: the number of steps; 0: it is not known."""

    def __init__(self, total: float = 0, silent: bool = False) -> None:
        self.total, self.silent, self.text, self.done = total, silent, "", 0.0
        self.begun, self._terminal = time.monotonic(), sys.stderr.isatty()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        """Erases the line, so that something else can be printed."""
        self._write("")

    def begin(self, text: str) -> None:
        """Shows the name of the next step."""
        self.text = text
        if not self._terminal and not self.silent:
            print(text, file=sys.stderr, flush=True)
        self.at(self.done)

    def at(self, done: float, more: str = "") -> None:
        """Shows that `done` steps are done."""
        self.done = done
        seconds = int(time.monotonic() - self.begun)
        counted = f"{done:.0f}/{self.total:.0f}, {seconds // 60}:{seconds % 60:02}  " if self.total else ""
        self._write(f"{counted}{self.text}{more}")

    def _write(self, line: str) -> None:
        if self._terminal and not self.silent:
            print(f"\r{line}\033[K", end="", file=sys.stderr, flush=True)


def tracked(steps: Sequence[Each], what: str) -> Iterator[Each]:
    """Yields the steps and shows on a terminal how many are done."""
    with Progress(len(steps), silent=not sys.stderr.isatty()) as progress:
        progress.begin(what)
        for number, step in enumerate(steps):
            yield step
            progress.at(number + 1)
