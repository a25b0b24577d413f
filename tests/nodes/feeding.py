"""A job over nodes that stays and is fed cases (tests/mpi/resident.py). Its pipes lie where all nodes see them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.mpi import resident
from tests.mpi.jobs import HOSTS, python_of
from tests.mpi.resident import Case
from tests.nodes.bed import Nodes
from tests.nodes.jobs import Job


class Fed(resident.Job):
    """A job of `host`, rank i on node placement[i]."""

    def __init__(self, nodes: Nodes, host: str, placement: Sequence[int], env: dict[str, str]) -> None:
        super().__init__(host, len(placement), {"NEARFIELD_STALL_SECONDS": "15"} | env)
        self.nodes, self.placement = nodes, list(placement)

    def calls(self, cases: list[Case], seconds: float = 60) -> list[dict]:
        """What each rank answers to given calls (tests/mpi/oracle/over_nodes.py), of which the host may serve some."""
        answers = self.run("oracle.over_nodes:calls", cases=cases, left="anything", timeout=seconds)
        return [answer["result"] for answer in answers]

    def folder(self) -> Path:
        made = self.nodes.files / f"cases-{time.monotonic_ns()}"
        made.mkdir()
        return made

    def launch(self) -> Any:
        program = [python_of(self.host), "-m", "tests.mpi.oracle.worker", str(self.directory)]
        self.job = Job(self.nodes, HOSTS[self.host], self.placement, program, self.env)
        return self.job.launcher

    def gone(self) -> str:
        self.nodes.kill_all()
        return self.swept()

    def printed(self) -> str:
        return self.job.wait(10).text
