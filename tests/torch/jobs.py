"""Jobs of PyTorch ranks, by whichever Python has it: NEARFIELD_TORCH_PYTHON, this one, or the system's (Debian's python3-torch)."""

import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from nearfield.torch_bench import python_with_torch

ROOT = Path(__file__).resolve().parents[2]
WORKER = Path(__file__).with_name("worker.py")


@dataclass
class Ended:
    """How a rank has ended: its status, what it has written, and the seconds that the job took."""

    status: int
    out: str
    errors: str
    seconds: float


def run_ranks(
    size: int,
    words: list[str],
    timeout: float = 120,
    env: dict[str, str] | None = None,
    prefix: tuple[str, ...] = (),
) -> list[Ended]:
    """Runs `python WORDS` as ranks 0 to size - 1 of PyTorch's environment (RANK, WORLD_SIZE, NF_TEST_STORE: a file)."""
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
        ranks = []
        for rank in range(size):
            with open(f"{scratch}/out.{rank}", "w") as out, open(f"{scratch}/errors.{rank}", "w") as errors:
                own = shared | {"RANK": str(rank)}
                ranks.append(subprocess.Popen([*prefix, python, *words], env=own, stdout=out, stderr=errors))
        ended = []
        for rank, process in enumerate(ranks):
            try:
                process.wait(max(start + timeout - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            texts = [Path(f"{scratch}/{name}.{rank}").read_text() for name in ("out", "errors")]
            ended.append(Ended(process.returncode, *texts, time.monotonic() - start))
        return ended


def run_scenario(name: str, size: int, *arguments: str, **how: object) -> list[Ended]:
    """A function of worker.py in all ranks."""
    return run_ranks(size, [str(WORKER), name, *arguments], **how)


def complaints(ranks: list[Ended]) -> str:
    """Of ranks that have not ended well."""
    bad = [(r, each) for r, each in enumerate(ranks) if each.status]
    return "\n".join(f"rank {r} ended with {each.status}:\n{each.out}{each.errors}" for r, each in bad)
