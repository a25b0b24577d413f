"""Saying something when a launcher has ended whose place we have taken: by a process beside it.

    nearfield run ----- exec -----> launcher ........ ends
         \\-- fork --> (gone)                            |
                 \\-- fork --> watcher, asleep ------> speaks

So the launcher is what was started: its process, its parent, its terminal, signals and exit status.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Callable


def call_afterwards(work: Callable[[], None]) -> bool:
    """Calls `work` in another process once this one, or what takes its place, has ended; False: it cannot be watched.

    The other process is no child of this one, and has a session of its own, so that neither a launcher nor the terminal
    meets it. It has this process's directory and standard error.
    """
    try:
        watched = os.pidfd_open(os.getpid())
    except OSError:  # Linux before 5.3
        return False
    between = os.fork()
    if between:
        os.close(watched)
        os.waitpid(between, 0)
        return True
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        _keep_only({sys.stderr.fileno(), watched})
        poll = select.poll()
        poll.register(watched, select.POLLIN)
        poll.poll()
        # Who reads standard error may have gone; there is nobody to complain to.
        with contextlib.suppress(Exception):
            work()
    finally:
        os._exit(0)


def _keep_only(kept: set[int]) -> None:
    """Closes all other descriptors; readers of pipes wait until everybody has."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    try:
        open_now = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:  # without /proc
        return
    for each in open_now:
        if each > 2 and each not in kept:
            with contextlib.suppress(OSError):  # the list itself
                os.close(each)
