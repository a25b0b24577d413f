"""What processes under Nearfield have said of themselves when they came to their MPI (engine/base/outcome.hpp)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """How many processes are served, and how many are not for which reason."""

    served: int
    reasons: Counter[str]


def read_outcome(file: Path) -> Outcome:
    """Reads the words that have been left in a file."""
    lines = file.read_text(errors="replace").splitlines()
    reasons = Counter(line.removeprefix("host ") for line in lines if line.startswith("host "))
    return Outcome(lines.count("served"), reasons)


def describe(outcome: Outcome, status: int = 0) -> list[str]:
    """What there is to say about a job in which no communication was served, and of its exit status where that is none of success;
    nothing where some was served."""
    if outcome.served:
        return []
    failed = f"the job ended with exit status {status}, and " if status > 0 else ""
    nobody = "no process of this node came through MPI_Init with Nearfield loaded"
    if not outcome.reasons:
        unknown = " (sessions alone are the host's); what ranks of other nodes did is not known here"
        return [f"{failed}{nobody}{'' if failed else unknown}"]
    return [
        f"{failed if not n else ''}in {count} process{'es' * (count > 1)} nothing was served: {reason}"
        for n, (reason, count) in enumerate(outcome.reasons.most_common())
    ]
