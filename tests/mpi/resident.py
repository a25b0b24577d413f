"""MPI jobs that stay and take case after case (tests/mpi/oracle/worker.py), so that a test costs calls and not a start."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tests.mpi.operations  # noqa: F401 - the table of algorithms, which jobs find in their environment
from tests.mpi.jobs import HOSTS, NOT_LAUNCHED, ROOT, command, descendants, environment, kill_tree, python_of

START = 60  # seconds that a job may need before its first case
AT_ONCE = 24  # ranks of jobs that stay; more give way to each other
Case = dict[str, Any]
Started = Callable[[list[str], dict[str, str], Path], subprocess.Popen]


def started(arguments: list[str], env: dict[str, str], directory: Path) -> subprocess.Popen:
    """A job's launcher, which writes to a file."""
    with open(directory / "output", "w") as output:
        return subprocess.Popen(
            arguments, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )


class Job:
    """A job of `host` that stays: started when a case comes, again after a failure, until end()."""

    def __init__(
        self, host: str, ranks: int, env: dict[str, str] | None, nearfield: bool = True, before: str = ""
    ) -> None:
        settings = {"PYTHONPATH": str(ROOT), "NEARFIELD_STALL_SECONDS": "30"}
        if host == "impi":  # by the Python of MPICH
            settings["MPI4PY_LIBMPI"] = str(HOSTS[host].library)
        self.host, self.ranks, self.before = host, ranks, before
        self.env = environment(host, nearfield, settings | (env or {}))
        self.launcher: Any = None

    def run(self, do: str, *, timeout: float = 60, **arguments: Any) -> list[dict[str, Any]]:
        """What a function below tests.mpi, as MODULE:FUNCTION, returns on each rank, and how many calls of what Nearfield
        carried there. A wrong result, a call left to the host, a crash or a hang is an AssertionError, and the next case
        gets a new job.
        """
        line = json.dumps({"do": do} | arguments)
        for _ in range(3):
            first = self.launcher is None
            if first:
                self.start()
            try:
                trouble = self.tried(line, timeout + START * first)
            except BaseException:  # of who runs the tests: the case is not over
                self.gone()
                raise
            if not trouble or not first or NOT_LAUNCHED not in trouble:
                break
        assert not trouble, trouble
        done = [self.directory / f"{self.number - 1}.{rank}" for rank in range(self.ranks)]
        return [json.loads(path.read_text()) for path in done]

    def tried(self, line: str, left: float) -> str:
        """Hands a case to all ranks and waits for their answers; what went wrong."""
        number, timeout, told = self.number, left, {}
        self.number += 1
        for pipe in self.pipes:
            os.write(pipe, line.encode() + b"\n")
        while len(told) < self.ranks:
            before = time.monotonic()
            answers = self.answered(min(max(left, 0), 0.5))
            told |= {rank: how for at, rank, how in answers if at == number}
            left -= min(time.monotonic() - before, 0.6)  # of time in which this process ran
            ended = self.launcher.poll() is not None and not answers
            if "failed" in told.values() or ended or left <= 0:
                return self.failure(number, line, told, timeout)
        return ""

    def command(self) -> list[str]:
        """Of the job."""
        worker = [python_of(self.host), "-m", "tests.mpi.oracle.worker", str(self.directory)]
        if self.before:  # what the shell of each rank does
            worker = ["sh", "-c", f'{self.before}; exec "$@"', "_", *worker]
        return command(self.host, self.ranks, worker)

    def launch(self) -> Any:
        """The running job: its launcher."""
        return started(self.command(), self.env, self.directory)

    def folder(self) -> Path:
        """Where the job's pipes and answers lie."""
        return Path(tempfile.mkdtemp(prefix="nearfield-job-"))

    def start(self) -> None:
        """Starts it."""
        self.directory = self.folder()
        self.number, self.kept, self.pipes = 0, b"", []
        for name in ["answers", *(f"cases.{rank}" for rank in range(self.ranks))]:
            os.mkfifo(self.directory / name)
            pipe = os.open(self.directory / name, os.O_RDWR | os.O_NONBLOCK)
            os.set_blocking(pipe, name != "answers")
            self.pipes.append(pipe)
        self.answers = self.pipes.pop(0)
        self.launcher = self.launch()

    def answered(self, seconds: float) -> list[tuple[int, int, str]]:
        """Number of the case, rank and how it went, of all answers that have come."""
        if select.select([self.answers], [], [], seconds)[0]:
            self.kept += os.read(self.answers, 1 << 16)
        *whole, self.kept = self.kept.split(b"\n")
        words = [line.decode().split() for line in whole]
        return [(int(number), int(rank), how) for number, rank, how in words]

    def failure(self, number: int, line: str, told: dict[int, str], timeout: float) -> str:
        """What is known of it; the job is gone then."""
        if "failed" in told.values():
            time.sleep(0.3)  # ranks that failed as well
            told |= {rank: how for at, rank, how in self.answered(0) if at == number}
            why = [
                (self.directory / f"{number}.{r}").read_text() for r, how in told.items() if how == "failed"
            ]
        else:
            ended = self.launcher.poll() is not None
            how = "the job ended" if ended else f"not through within {timeout:.0f} s"
            why = [f"{how}, ranks {sorted(set(range(self.ranks)) - set(told))} without an answer: {line}"]
            why += self.whereabouts()
        output = self.gone()
        return "\n".join([*why, output[-3000:]])

    def whereabouts(self) -> list[str]:
        """Where the ranks' Python is."""
        for pid in descendants(self.launcher.pid):
            words = Path(f"/proc/{pid}/cmdline").read_bytes() if Path(f"/proc/{pid}").exists() else b""
            if b"\0tests.mpi.oracle.worker" in words and b"mpiexec" not in words.split(b"\0")[0]:
                os.kill(pid, signal.SIGUSR1)
        time.sleep(0.3)
        found = sorted(self.directory.glob("where.*"))
        return [f"{path.name}: {path.read_text()[:1500]}" for path in found]

    def gone(self) -> str:
        """Kills it; what it has printed."""
        kill_tree(self.launcher.pid)
        self.launcher.wait()
        return self.swept()

    def swept(self) -> str:
        """Closes pipes and removes files; what was printed."""
        output = self.printed()
        for pipe in [self.answers, *self.pipes]:
            os.close(pipe)
        for path in self.directory.iterdir():
            path.unlink()
        self.directory.rmdir()
        self.launcher = None
        return output

    def printed(self) -> str:
        """What the job has printed, which is over."""
        return (self.directory / "output").read_text(errors="replace")

    def end(self) -> None:
        """Ends it, which has to go well."""
        if self.launcher is None:
            return
        for pipe in self.pipes:
            os.write(pipe, b"end\n")
        try:
            status = self.launcher.wait(30)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the job does not end\n{self.gone()[-3000:]}") from None
        output = self.swept()
        assert status == 0, f"the job ended with {status}\n{output[-3000:]}"


class Jobs:
    """Jobs by host, ranks and environment; those that were not used for longest give way."""

    def __init__(self) -> None:
        self.kept: OrderedDict[tuple, Job] = OrderedDict()

    def __call__(
        self,
        host: str,
        ranks: int,
        env: dict[str, str] | None = None,
        nearfield: bool = True,
        before: str = "",
    ) -> Job:
        """A job whose ranks have that environment, by what the shell of each does `before`."""
        key = (host, ranks, nearfield, before, *sorted((env or {}).items()))
        job = self.kept.pop(key, None) or Job(host, ranks, env, nearfield, before)
        self.kept[key] = job
        while len(self.kept) > 1 and sum(one.ranks for one in self.kept.values()) > AT_ONCE:
            self.kept.popitem(last=False)[1].end()
        return job

    def end(self) -> None:
        """Ends all of them; raises what was wrong with the first that did not end well."""
        troubles = []
        while self.kept:
            try:
                self.kept.popitem()[1].end()
            except AssertionError as trouble:
                troubles.append(trouble)
        if troubles:
            raise troubles[0]
