"""Runs the steps of a survey within a time, and goes on where it was stopped.

DIR/survey.json       what the survey is of, and how many seconds it has used
DIR/steps/NAME.json   what a step has measured; it is there once the step is done
DIR/failures.txt      what jobs that failed have said; it stays here
DIR/cache             figures of the machine, calibrated anew; the user's own are left alone
DIR/survey-....zip    what may leave the machine (archive.py)
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from nearfield import __version__, choices, model
from nearfield.bench import host_version, run_bench
from nearfield.hosts import find_hosts
from nearfield.info import gather
from nearfield.libraries import NotBuilt, program
from nearfield.machine import machine, machine_word, text_of
from nearfield.survey import archive
from nearfield.survey.places import Placement, describe, pairs_of, placements, places_here
from nearfield.survey.steps import COLLECTIVES, SECONDS_OF_A_LINE, SHARE_OF_LINES, Step, steps_for

Record = dict[str, Any]
AT_ONCE = 100  # pairs of CPUs that one process measures
NO_WORKER = "the program that does is not built for it; it comes with a build from the source"
LATE, FAILED, NOT_BUILT = "took too long", "failed", "not built"


class Survey:
    """One directory of results. Raises ValueError where it is of another machine, version, or other MPIs."""

    def __init__(
        self,
        out: Path,
        minutes: float,
        hosts: Sequence[str],
        more: Sequence[int],
        ops: Sequence[str] = COLLECTIVES,
    ) -> None:
        self.out, self.minutes = out, minutes
        self.places = places_here()
        self.hosts = {name: find_hosts()[name] for name in hosts}
        self.without = {name for name, host in self.hosts.items() if not _has_worker(host.abi)}
        usable = [name for name in hosts if name not in self.without]
        self.steps = steps_for(minutes, placements(self.places, more), usable, ops, _free_memory())
        (out / "steps").mkdir(parents=True, exist_ok=True)
        self.about = {
            "format": archive.FORMAT,
            "version": __version__,
            "machine": archive.about_machine(machine()),
            "places": describe(self.places),
            "hosts": {name: host_version(host) for name, host in self.hosts.items()},
        }
        self.used = self._used_before()
        self.until = time.monotonic() + 60 * minutes - self.used

    def _used_before(self) -> float:
        """Seconds that the survey in the directory has used; 0 where there is none."""
        path = self.out / "survey.json"
        if not path.exists():
            return 0
        before = json.loads(path.read_text())
        for key, mine in self.about.items():
            if before.get(key) != mine:
                raise ValueError(
                    f"{self.out} has a survey of another {key}: name another directory, or remove it"
                )
        return before["used"]

    def remarks(self) -> list[str]:
        """What is to be said before it begins."""
        said = []
        if not self.hosts:
            said.append("there is no MPI, so no calls are measured")
        if self.without:
            said.append(
                f"no calls are measured with {', '.join(sorted(self.without))}: {NO_WORKER} (docs/running.md, Installing)"
            )
        if self.used:
            said.append(f"goes on with what {_clock(self.used)} minutes have measured")
        return said

    def left(self) -> float:
        """Seconds until no further step begins."""
        return self.until - time.monotonic()

    def run(self) -> Path:
        """Runs all steps for which there is time, and returns the archive; an interruption ends it early."""
        todo = [step for step in self.steps if not self._path(step).exists()]
        with contextlib.suppress(KeyboardInterrupt), self._own_cache(), self._progress() as advance:
            for index, step in enumerate(todo):
                if self.left() <= 0:
                    break
                advance(step, 0)
                share = self.left() * step.weight / sum(one.weight for one in todo[index:])
                self._store(step, self._measured(step, share))
                advance(step, 1)
        return self._write()

    def missing(self) -> list[str]:
        """Names of the steps for which there was no time."""
        return [step.name for step in self.steps if not self._path(step).exists()]

    # ---- one step
    def _measured(self, step: Step, share: float) -> Record:
        """What a step has given; `share`: its seconds."""
        begun = time.monotonic()
        record: Record = {"kind": step.kind}
        if step.placement:
            record |= {"placement": step.placement.name, "ranks": step.placement.ranks}
            record |= {"op": step.op, "host": step.host, "protocol": step.protocol}
        try:
            record |= self._kinds()[step.kind](step, share)
        except NotBuilt as error:
            record["failed"] = self._say(step, NOT_BUILT, str(error))
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            record["failed"] = self._say(step, FAILED, str(error))
        return record | {"seconds": round(time.monotonic() - begun, 2)}

    def _kinds(self) -> dict[str, Callable[[Step, float], Record]]:
        return {
            "machine": lambda step, share: {"found": archive.about_probe(gather())},
            "calibration": lambda step, share: self._calibrated(),
            "lines": lambda step, share: self._lines(),
            "copies": self._by_host,
            "by host": self._by_host,
            "by algorithm": self._by_algorithm,
        }

    def _calibrated(self) -> Record:
        model.calibrate()
        return {"found": archive.about_probe(gather())["figures"]}

    def _lines(self) -> Record:
        most = max(1, int(60 * self.minutes * SHARE_OF_LINES / SECONDS_OF_A_LINE))
        pairs = pairs_of(self.places, most)
        until = time.monotonic() + 2 * 60 * self.minutes * SHARE_OF_LINES
        rows: list[Record] = []
        for index in range(0, len(pairs), AT_ONCE):
            if time.monotonic() > until:
                return {"rows": rows, "failed": LATE}
            rows += model.lines_between(pairs[index : index + AT_ONCE])
        return {"rows": rows}

    def _by_host(self, step: Step, share: float) -> Record:
        failures: list[str] = []
        limit = self._limit(share)
        with bound_to(step.placement):
            rows = run_bench(
                *([step.op], [step.placement.ranks], list(step.sizes), [step.host], ["used"]),
                self._seconds(step, share),
                protocols=[step.protocol or "auto"],
                failures=failures,
                limit=limit,
                silent=True,
            )
        why = "".join(failures)
        late = "did not end within" in why
        return {"rows": rows} | ({"failed": self._say(step, LATE if late else FAILED, why)} if why else {})

    def _by_algorithm(self, step: Step, share: float) -> Record:
        with bound_to(step.placement):
            cells = choices.measure(
                *(self.hosts[step.host], step.op, step.placement.ranks, list(step.sizes)),
                self._seconds(step, share),
                self._limit(share) - choices.GRACE,
            )
        return {"rows": cells} | ({"failed": LATE} if len(cells) < len(step.sizes) else {})

    @staticmethod
    def _seconds(step: Step, share: float) -> float:
        """Of one cell."""
        return max(choices.LEAST, 0.6 * (share - choices.BEGINNING) / max(1, len(step.sizes)))

    def _limit(self, share: float) -> float:
        """Seconds after which a job is stopped: what it has given by then counts."""
        return min(10 + 2 * max(share, 0), max(self.left(), 0) + 20)

    # ---- files
    def _path(self, step: Step) -> Path:
        return self.out / "steps" / (re.sub(r"[^a-z0-9]+", "-", step.name.lower()) + ".json")

    def _store(self, step: Step, record: Record) -> None:
        self.used += record["seconds"]
        whole = self._path(step)
        part = whole.with_suffix(".part")
        part.write_text(json.dumps(record, indent=1) + "\n")
        part.replace(whole)
        self._store_about()

    def _store_about(self) -> None:
        text = json.dumps(self.about | {"minutes": self.minutes, "used": round(self.used, 1)}, indent=1)
        (self.out / "survey.json").write_text(text + "\n")

    def _say(self, step: Step, word: str, text: str) -> str:
        with (self.out / "failures.txt").open("a", errors="replace") as file:
            file.write(f"---- {step.name}: {word}\n{text.strip()}\n")
        return word

    def _write(self) -> Path:
        self._store_about()
        done = {step.name: step for step in self.steps if self._path(step).exists()}
        steps = {name: json.loads(self._path(step).read_text()) for name, step in done.items()}
        path = self.out / f"survey-{machine_word()}-{len(self.places)}-cpus.zip"
        about = self.about | {"minutes": self.minutes, "used": round(self.used), "missing": self.missing()}
        archive.write(path, about | {"without_workers": sorted(self.without)}, steps)
        return path

    # ---- around all steps
    @contextlib.contextmanager
    def _own_cache(self) -> Iterator[None]:
        before = os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = str((self.out / "cache").resolve())
        try:
            yield
        finally:
            os.environ.pop("XDG_CACHE_HOME")
            if before is not None:
                os.environ["XDG_CACHE_HOME"] = before

    @contextlib.contextmanager
    def _progress(self) -> Iterator[Callable[[Step, int], None]]:
        """A bar with the time left; where nobody looks a line for each step."""
        console = Console(stderr=True)
        columns = TextColumn("{task.description:52}"), BarColumn(), TimeLeft(self)
        with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
            task = progress.add_task("", total=sum(step.weight for step in self.steps))
            for step in self.steps:
                if self._path(step).exists():
                    progress.advance(task, step.weight)

            def advance(step: Step, done: int) -> None:
                progress.update(task, description=step.name, advance=done * step.weight)
                if not done and not console.is_terminal:
                    print(f"{_clock(self.left())} left: {step.name}", file=sys.stderr, flush=True)

            yield advance


class TimeLeft(ProgressColumn):
    """Until when a survey begins steps."""

    def __init__(self, survey: Survey) -> None:
        super().__init__()
        self.survey = survey

    def render(self, task: Task) -> Text:
        """Minutes and seconds."""
        return Text(f"at most {_clock(self.survey.left())} left")


def _clock(seconds: float) -> str:
    return f"{int(max(seconds, 0)) // 60}:{int(max(seconds, 0)) % 60:02}"


@contextlib.contextmanager
def bound_to(placement: Placement) -> Iterator[None]:
    """What is started meanwhile may use the placement's CPUs alone; the worker gives each rank one of them."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, placement.cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _has_worker(abi: str) -> bool:
    try:
        return bool(program(f"nearfield-bench-{abi}"))
    except NotBuilt:
        return False


def _free_memory() -> float:
    """Bytes of memory that are free, or infinity where the system does not say."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB", text_of(Path("/proc/meminfo")), re.MULTILINE)
    return float(found[1]) * 1024 if found else float("inf")
