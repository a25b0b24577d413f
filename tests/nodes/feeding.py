"""A job over nodes that stays and is fed programs of collective calls (worker_collectives.py), so that a test costs calls
and not a start.

    test                         every rank
      N.json, renamed to appear    finds it, makes its calls, compares
      reads all of them            N.done.RANK, or N.failed.RANK and the end of the job

The files lie where all nodes see them, so a job that waits for its next program sends nothing and hardly computes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nearfield.node_jobs import Job
from nearfield.nodes import Nodes
from tests.mpi.jobs import HOSTS, ROOT, environment, python_of

WORKER = str(Path(__file__).with_name("worker_collectives.py"))
START = 40  # seconds that a job may need before its first program
Case = dict[str, Any]


class Fed:
    """A job of `host`, rank i on node placement[i], that runs programs until end()."""

    def __init__(self, nodes: Nodes, host: str, placement: Sequence[int], env: dict[str, str]) -> None:
        self.nodes, self.host, self.placement = nodes, host, list(placement)
        self._env = {"PYTHONPATH": str(ROOT / "tests/mpi"), "NEARFIELD_STALL_SECONDS": "15"} | env
        self._job: Job | None = None

    def run(self, cases: list[Case], seconds: float = 60) -> list[dict]:
        """What each rank answers: `served`, calls by [collective, forced row, row that served, whether its communicator
        spans nodes], and `digests`, of what each case gave it. A wrong result, a crash or a hang is an AssertionError,
        after which the next program gets a new job.
        """
        fresh = self._job is None
        job = self._job or self._start()
        number = self._programs
        self._programs += 1
        hidden = self._files / "hidden"
        hidden.write_text(json.dumps(cases))
        hidden.rename(self._files / f"{number}.json")
        left = seconds + START * fresh  # of time in which this process ran: who stops a test run stops it too
        done = [self._files / f"{number}.done.{rank}" for rank in range(job.ranks)]
        while not all(path.exists() for path in done):
            failed = sorted(self._files.glob(f"{number}.failed.*"))
            ended = job.launcher.poll() is not None
            if failed or ended or left < 0:
                time.sleep(0.2)  # ranks that failed as well
                failed = sorted(self._files.glob(f"{number}.failed.*"))
                why = "\n".join(path.read_text() for path in failed) or (
                    f"the job ended, or did not within {seconds:.0f} s\n{self._whereabouts(cases)}"
                )
                self._job = None
                self.nodes.kill_all()
                raise AssertionError(f"{why}\n{job.wait(10).text[-3000:]}")
            before = time.monotonic()
            time.sleep(0.005)
            left -= min(time.monotonic() - before, 0.1)
        return [json.loads(path.read_text()) for path in done]

    def end(self) -> None:
        """Ends the job, which has to end well."""
        if self._job:
            (self._files / "end").touch()
            ended = self._job.wait(30)
            self._job = None
            assert ended.returncode == 0 and not ended.timed_out, ended.text[-3000:]

    def _start(self) -> Job:
        self._programs = 0
        self._files = self.nodes.files / f"programs-{time.monotonic_ns()}"
        self._files.mkdir()
        command = [python_of(self.host), WORKER, str(self._files)]
        env = environment(self.host, True, self._env)
        self._job = Job(self.nodes, HOSTS[self.host], self.placement, command, env)
        return self._job

    def _whereabouts(self, cases: list[Case]) -> str:
        """Which case each rank was at."""
        lines = []
        for rank in range(len(self.placement)):
            at = self._files / f"at.{rank}"
            number = at.read_text() if at.exists() else ""
            lines.append(f"rank {rank}: {json.dumps(cases[int(number)]) if number else 'not begun'}")
        return "\n".join(lines)
