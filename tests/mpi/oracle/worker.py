"""A job that stays and takes case after case; tests/mpi/resident.py is the other side.

    python -m tests.mpi.oracle.worker DIRECTORY

Every rank reads lines from DIRECTORY/cases.RANK, a pipe: each is a case {"do": "MODULE:FUNCTION", ...}, which names a
function below tests.mpi and its arguments. The answer lies in DIRECTORY/N.RANK when the rank has written its line into
DIRECTORY/answers. After each case everything has to have been served by Nearfield but the first calls of deferred communicators, unless
the case says which other variables that count what is left to the host may grow (`left`), or that nothing is said
("anything"). A line "end" ends the
job. A rank whose case failed says so and waits to be killed: others may wait for it in MPI.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import os
import select
import signal
import sys
import traceback
from collections import deque
from pathlib import Path
from typing import Any

from mpi4py import MPI

WORLD = MPI.COMM_WORLD


def lines(path: Path) -> Any:
    """Those that are written into a pipe, until nobody has it open for that. Who waits for one sleeps.

    What others still wait for may go out only while its sender calls MPI, which it therefore does now and then.
    """
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    waiting, kept, seconds = select.poll(), b"", 0.001
    waiting.register(pipe, select.POLLIN)
    while True:
        while b"\n" in kept:
            line, kept = kept.split(b"\n", 1)
            yield line.decode()
            seconds = 0.001
        if waiting.poll(seconds * 1000):
            more = os.read(pipe, 1 << 16)
            if not more:  # who wrote is gone
                return
            kept += more
        else:
            WORLD.Iprobe()
            seconds = min(seconds * 1.5, 1)


def run(case: dict[str, Any], counters: Any) -> dict[str, Any]:
    """What the case's function returns, and what was carried."""
    left_allowed = case.pop("left", [])
    module, function = case.pop("do").split(":")
    call = getattr(importlib.import_module(f"tests.mpi.{module}"), function)
    before = counters.read()
    result = call(**case)
    carried, left = counters.since(before)
    if left_allowed != "anything":
        allowed = [*left_allowed, "team_is_deferred", "communicator_of_one_rank"]
        unexpected = {name: n for name, n in left.items() if not any(part in name for part in allowed)}
        assert not unexpected, f"left to the host: {unexpected}"
    return {"result": result, "carried": carried, "left": left}


def main() -> None:
    """Cases until the end."""
    from tests.mpi.oracle.counters import Counters  # its library is found when MPI is there

    directory = Path(sys.argv[1])
    where = open(directory / f"where.{WORLD.rank}", "w")  # noqa: SIM115
    faulthandler.enable(where)
    faulthandler.register(signal.SIGUSR1, where)
    answers = os.open(directory / "answers", os.O_WRONLY)
    counters = Counters()
    cases = lines(directory / f"cases.{WORLD.rank}")
    for number, line in enumerate(cases):
        if line == "end":
            break
        try:
            answer, good = json.dumps(run(json.loads(line), counters)), True
        except BaseException:
            answer, good = f"rank {WORLD.rank} of {WORLD.size}: {line}\n{traceback.format_exc()}", False
        (directory / f"{number}.{WORLD.rank}").write_text(answer)
        os.write(answers, f"{number} {WORLD.rank} {'good' if good else 'failed'}\n".encode())
        if not good:
            deque(cases, 0)  # until who reads the answer has killed all, or is gone
            os._exit(1)
    with contextlib.suppress(OSError):
        os.close(answers)


if __name__ == "__main__":
    main()
