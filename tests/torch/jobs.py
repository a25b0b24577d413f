"""Jobs of PyTorch ranks, by whichever Python has it: NEARFIELD_TORCH_PYTHON, this one, or the system's (Debian's python3-torch)."""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.pytorch import python_with_torch

ROOT = Path(__file__).resolve().parents[2]
WORKER = Path(__file__).with_name("worker.py")
FORKED = Path(__file__).with_name("forked.py")


@dataclass
class Ended:
    """How a rank has ended: its status, what it has written, and the seconds that the job took."""

    status: int
    out: str
    errors: str
    seconds: float


def run_scenario(
    name: str,
    size: int,
    *arguments: str,
    timeout: float = 120,
    env: dict[str, str] | None = None,
    prefix: tuple[str, ...] = (),
) -> list[Ended]:
    """A function of worker.py in ranks 0 to size - 1 of PyTorch's environment (RANK, WORLD_SIZE, NF_TEST_STORE: a file). With `prefix`, which
    is a command, or `env` each is a program of its own; otherwise all are forked, as importing PyTorch is most of what they do.
    """
    python = python_with_torch()
    assert python
    with tempfile.TemporaryDirectory(prefix="nearfield-torch-") as scratch:
        shared = os.environ | {
            "WORLD_SIZE": str(size),
            "NF_TEST_STORE": f"{scratch}/store",
            "OMP_NUM_THREADS": "1",
        }
        shared |= {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", **(env or {})}
        start = time.monotonic()
        if prefix or env:
            jobs = [[*prefix, python, str(FORKED), scratch, "1"]] * size
        else:
            jobs = [[python, str(FORKED), scratch, str(size)]]
        words = [str(WORKER), name, *arguments]
        programs = [
            subprocess.Popen(
                [*job, *words],
                env=shared | {"NF_TEST_FIRST": str(first), "RANK": str(first)},
                start_new_session=True,
            )
            for first, job in enumerate(jobs)
        ]
        for program in programs:
            try:
                program.wait(max(start + timeout - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(program.pid, signal.SIGKILL)
                program.wait()
        seconds = time.monotonic() - start
        return [Ended(*_texts(Path(scratch), rank), seconds) for rank in range(size)]


def _texts(scratch: Path, rank: int) -> tuple[int, str, str]:
    status, out, errors = (
        path.read_text() if path.exists() else ""
        for path in (scratch / f"{name}.{rank}" for name in ("status", "out", "errors"))
    )
    return int(status or -signal.SIGKILL), out, errors


def complaints(ranks: list[Ended]) -> str:
    """Of ranks that have not ended well."""
    bad = [(r, each) for r, each in enumerate(ranks) if each.status]
    return "\n".join(f"rank {r} ended with {each.status}:\n{each.out}{each.errors}" for r, each in bad)
