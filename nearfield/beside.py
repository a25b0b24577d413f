"""Processes that keep the machine busy beside a measurement (`nearfield bench --beside N[,kind]`).

    cpu       computes, for ever
    memory    copies arrays that fit no cache
    waking    sleeps for 50 us and works for some, thousands of times a second

A neighbour runs this file as a program; its arguments are its kind and the process that has started it. It ends when that
process ends, for whatever reason.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

KINDS = ("cpu", "memory", "waking")
PATIENCE = 60.0  # seconds, until all have begun


@dataclass(frozen=True)
class Beside:
    """A number of neighbours of one kind."""

    count: int = 0
    kind: str = "cpu"

    @staticmethod
    def parse(text: str) -> Beside:
        """Reads "2" or "2,memory". Raises ValueError."""
        count, _, kind = text.partition(",")
        if not count.isdecimal():
            raise ValueError(f"--beside takes N or N,kind, not {text}")
        kind = kind or KINDS[0]
        if kind not in KINDS:
            raise ValueError(f"--beside knows no kind {kind}; the kinds are {', '.join(KINDS)}")
        return Beside(int(count), kind)

    def __str__(self) -> str:
        return f"{self.count} {self.kind}" if self.count else ""

    @contextlib.contextmanager
    def running(self) -> Iterator[list[int]]:
        """A context in which they run; gives their processes. Raises ValueError if one does not start, or ends before the context does."""
        env = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
        command = [sys.executable, "-IS", __file__, self.kind, str(os.getpid())]
        with contextlib.ExitStack() as stack:
            every: list[subprocess.Popen] = []
            for _ in range(self.count):
                # In a session of its own: what is typed at the terminal ends it by way of this process alone.
                every.append(
                    subprocess.Popen(
                        command,
                        env=env,
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE,
                        start_new_session=True,
                    )
                )
                stack.callback(_end, every[-1])
            late = time.monotonic() + PATIENCE
            for one in every:
                assert one.stdout is not None
                os.set_blocking(one.stdout.fileno(), False)
                while not one.stdout.read(1):
                    if one.poll() is not None or time.monotonic() > late:
                        raise ValueError(f"a busy process of kind {self.kind} did not start")
                    time.sleep(0.001)
            yield [one.pid for one in every]
            if any(one.poll() is not None for one in every):
                raise ValueError(f"a busy process of kind {self.kind} ended before the measurement")


ALONE = Beside()


def _end(one: subprocess.Popen) -> None:
    one.kill()
    one.wait()
    if one.stdout:
        one.stdout.close()


def _work(kind: str, parent: int) -> None:
    """The loop of a neighbour, which ends with its parent."""
    set_death_signal = 1  # PR_SET_PDEATHSIG
    ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        return
    large = bytearray(64 << 20) if kind == "memory" else bytearray()
    other = bytearray(len(large))
    os.write(1, b"!")
    while kind == "cpu":
        for _ in range(1_000_000):
            pass
    while kind == "memory":
        other[:] = large
    while kind == "waking":
        time.sleep(50e-6)
        for _ in range(500):
            pass


if __name__ == "__main__":
    _work(sys.argv[1], int(sys.argv[2]))
