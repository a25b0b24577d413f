"""Ranks of one job, forked from a process that has imported PyTorch once: `forked.py SCRATCH SIZE SCRIPT [WORDS]`, the first of which is
NF_TEST_FIRST. What rank R writes goes to SCRATCH/out.R and SCRATCH/errors.R, and its status to SCRATCH/status.R.
"""

import os
import runpy
import sys
from pathlib import Path

import torch.distributed  # noqa: F401 (so that the ranks have it)


def run(rank: int, scratch: Path, words: list[str]) -> None:
    """In the child: the script as a program of its own."""
    os.environ["RANK"] = str(rank)
    for descriptor, name in ((1, "out"), (2, "errors")):
        os.dup2(os.open(scratch / f"{name}.{rank}", os.O_WRONLY | os.O_CREAT), descriptor)
    sys.argv = words
    runpy.run_path(words[0], run_name="__main__")


def main() -> None:
    scratch, size, words = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    first = int(os.environ["NF_TEST_FIRST"])
    ranks = {}
    for rank in range(first, first + size):
        pid = os.fork()
        if not pid:
            run(rank, scratch, words)
            return
        ranks[pid] = rank
    while ranks:
        pid, status = os.wait()
        (scratch / f"status.{ranks.pop(pid)}").write_text(str(os.waitstatus_to_exitcode(status)))


if __name__ == "__main__":
    main()
