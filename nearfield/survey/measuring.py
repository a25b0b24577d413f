"""Measures within a time, step by step, and goes on where it was stopped.

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
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nearfield import __version__, choices, model
from nearfield.bench import host_version, run_bench
from nearfield.hosts import find_hosts
from nearfield.info import gather
from nearfield.libraries import NotBuilt, program
from nearfield.machine import machine, machine_word, text_of
from nearfield.operations import PROTOCOLS, sizes_of
from nearfield.places import RELATIONS, Place, pairs_of, places_here, relation
from nearfield.progress import Progress
from nearfield.survey import archive

Record = dict[str, Any]
# Without scans and variants of one another.
COLLECTIVES = ("allreduce", "bcast", "alltoall", "barrier", "reduce", "allgather", "gather", "scatter")
COLLECTIVES += ("reduce_scatter_block",)
SIZES = (8, 512, 16 << 10, 256 << 10, 2 << 20)
PAIRS = 1000  # of CPUs whose lines are measured, AT_ONCE by one process
AT_ONCE = 100
# Blocks of each rank for each, on both sides, the host's and ours, may take so much of the memory that is free.
OF_MEMORY = 0.25
WITH_BLOCKS = ("alltoall", "allgather", "gather", "scatter", "reduce_scatter_block")
NO_WORKER = "the program that measures them was not built; a build from the source has it"
LATE, FAILED = "took too long", "failed"


@dataclass(frozen=True)
class Placement:
    """A name, and the CPUs that ranks may use: a rank for each, unless `ranks` says otherwise."""

    name: str
    cpus: tuple[int, ...]
    ranks: int


@dataclass(frozen=True)
class Step:
    """`kind`: machine (as `nearfield info`), lines, calls (as `nearfield bench`) or choices (nearfield/choices.py)."""

    kind: str
    placement: Placement | None = None
    op: str = ""
    host: str = ""
    sizes: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """A word for its file, and what is shown while it runs."""
        where = self.placement.name if self.placement else ""
        return ", ".join(filter(None, (self.kind, where, self.op, self.host)))


def placements(places: Sequence[Place], more: Sequence[int] = ()) -> list[Placement]:
    """Two ranks of each relation that there is, a rank for each core and for each CPU, each set of CPUs once; `more`: also so many
    ranks on all CPUs. One CPU has two ranks."""
    first, every = places[0], tuple(place.cpu for place in places)
    pairs = {relation(first, other): (first.cpu, other.cpu) for other in reversed(places[1:])}
    named = [(f"one {name}", pairs[name]) for name in (*RELATIONS[1:], RELATIONS[0]) if name in pairs]
    named.append(("all cores", tuple(sorted({place.core: place.cpu for place in reversed(places)}.values()))))
    named.append(("all CPUs", every))
    found: dict[tuple[int, ...], Placement] = {}
    for what, cpus in named:
        if len(cpus) > 1:
            found.setdefault(cpus, Placement(f"{len(cpus)} ranks, {what}", cpus, len(cpus)))
    if not found:
        found[every] = Placement("2 ranks, one CPU", every, 2)
    there = {(one.cpus, one.ranks) for one in found.values()}
    counts = [ranks for ranks in dict.fromkeys(more) if (every, ranks) not in there]
    return [*found.values(), *(Placement(f"{n} ranks on {len(every)} CPUs", every, n) for n in counts)]


def steps_for(
    where: Sequence[Placement], hosts: Sequence[str], ops: Sequence[str] = COLLECTIVES, free: float = 1e99
) -> list[Step]:
    """All steps, in the order of importance; `hosts`, the first of which measures algorithms too; `free` bytes of memory."""
    steps = [Step("machine"), Step("lines")]
    for index, host in enumerate(hosts):
        if index == 0:
            steps += [Step("calls", one, "latency", host, SIZES) for one in where if one.ranks == 2]
        for one in where:
            for op in ops:
                sizes = tuple(size for size in sizes_of(op, list(SIZES)) if fits(op, size, one, free))
                kinds = ("choices", "calls") if index == 0 and op != "barrier" else ("calls",)
                steps += [Step(kind, one, op, host, sizes) for kind in kinds if sizes]
    return steps


def fits(op: str, size: int, placement: Placement, free: float) -> bool:
    """Whether the buffers of a job do."""
    blocks = placement.ranks if op in WITH_BLOCKS else 1
    return 4 * placement.ranks * blocks * size <= OF_MEMORY * free


class Survey:
    """One directory of results. Raises ValueError where it is of another machine, version, or other MPIs."""

    def __init__(
        self,
        out: Path,
        minutes: float,
        hosts: Sequence[str],
        more: Sequence[int] = (),
        ops: Sequence[str] = COLLECTIVES,
    ) -> None:
        self.out, self.minutes = out, minutes
        self.places = places_here()
        self.hosts = {name: find_hosts()[name] for name in hosts}
        self.without = [name for name, host in self.hosts.items() if not _has_worker(host.abi)]
        usable = [name for name in hosts if name not in self.without]
        self.steps = steps_for(placements(self.places, more), usable, ops, _free_memory())
        (out / "steps").mkdir(parents=True, exist_ok=True)
        self.about = {
            "format": archive.FORMAT,
            "version": __version__,
            "machine": archive.about_machine(machine()),
            "places": [asdict(place) for place in self.places],
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
                    f"{self.out} has a survey of another {key}; name another directory, or remove that one"
                )
        return before["used"]

    def remarks(self) -> list[str]:
        """What is to be said before it begins."""
        without = f"no calls are measured with {', '.join(self.without)}: {NO_WORKER} (docs/user/start.md, Installing)"
        return [
            *["there is no MPI, so no calls are measured"] * (not self.hosts),
            *[without] * bool(self.without),
            *[f"continues the survey, which has taken {self.used / 60:.2g} minutes so far"] * bool(self.used),
        ]

    def missing(self) -> list[str]:
        """Names of the steps for which there was no time."""
        return [step.name for step in self.steps if not self._path(step).exists()]

    def run(self) -> Path:
        """Runs all steps for which there is time, and returns the archive; an interruption ends it early."""
        todo = [step for step in self.steps if not self._path(step).exists()]
        with contextlib.suppress(KeyboardInterrupt), self._own_cache(), Progress(len(self.steps)) as progress:
            for index, step in enumerate(todo):
                left = self.until - time.monotonic()
                if left <= 0:
                    break
                progress.at(len(self.steps) - len(todo) + index)
                progress.begin(f"{step.name}, at most {left / 60:.1f} minutes left")
                begun = time.monotonic()
                record = self._measured(step, left / (len(todo) - index), left)
                record["seconds"] = round(time.monotonic() - begun, 2)
                self.used += record["seconds"]
                _write(self._path(step), record)
                self._write_about()
        return self._archive()

    # ---- one step
    def _measured(self, step: Step, share: float, left: float) -> Record:
        """What a step has given; `share`: its seconds, of all that are `left`."""
        record: Record = {"kind": step.kind, "op": step.op, "host": step.host}
        if step.placement:
            record |= {"placement": step.placement.name, "ranks": step.placement.ranks}
        seconds = max(choices.LEAST, 0.6 * (share - choices.BEGINNING) / max(1, len(step.sizes)))
        limit = min(10 + 2 * share, left + 20)  # what a job has given by then counts
        try:
            if step.kind == "machine":
                model.calibrate()
                record["found"] = archive.about_probe(gather())
            elif step.kind == "lines":
                pairs = pairs_of(self.places, PAIRS)
                parts = [pairs[index : index + AT_ONCE] for index in range(0, len(pairs), AT_ONCE)]
                record["rows"] = [row for part in parts for row in model.lines_between(part)]
            elif step.kind == "choices":
                with bound_to(step.placement):
                    host, sizes = self.hosts[step.host], list(step.sizes)
                    record["rows"] = choices.measure(
                        host, step.op, step.placement.ranks, sizes, seconds, limit - choices.GRACE
                    )
                if len(record["rows"]) < len(step.sizes):
                    record["failed"] = LATE
            else:
                failures: list[str] = []
                with bound_to(step.placement):
                    record["rows"] = run_bench(
                        *([step.op], [step.placement.ranks], list(step.sizes), [step.host], ["used"]),
                        seconds,
                        protocols=list(PROTOCOLS) if step.op == "latency" else None,
                        failures=failures,
                        limit=limit,
                        silent=True,
                    )
                if failures:
                    raise ValueError("\n".join(failures))
        except (NotBuilt, OSError, ValueError, subprocess.SubprocessError) as error:
            record["failed"] = LATE if "did not end within" in str(error) else FAILED
            with (self.out / "failures.txt").open("a", errors="replace") as file:
                file.write(f"---- {step.name}: {record['failed']}\n{str(error).strip()}\n")
        return record

    # ---- files
    def _path(self, step: Step) -> Path:
        return self.out / "steps" / (re.sub(r"[^a-z0-9]+", "-", step.name.lower()) + ".json")

    def _write_about(self) -> None:
        _write(self.out / "survey.json", self.about | {"minutes": self.minutes, "used": round(self.used, 1)})

    def _archive(self) -> Path:
        self._write_about()
        done = [step for step in self.steps if self._path(step).exists()]
        steps = {step.name: json.loads(self._path(step).read_text()) for step in done}
        path = self.out / f"survey-{machine_word()}-{len(self.places)}-cpus.zip"
        about = self.about | {"minutes": self.minutes, "used": round(self.used), "missing": self.missing()}
        archive.write(path, about | {"without_workers": self.without}, steps)
        return path

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
def bound_to(placement: Placement) -> Iterator[None]:
    """What is started meanwhile may use the placement's CPUs alone; the worker gives each rank one of them."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, placement.cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _write(path: Path, record: Record) -> None:
    """At once: whoever reads meanwhile finds the old one or the new one."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(record, indent=1) + "\n")
    part.replace(path)


def _has_worker(abi: str) -> bool:
    try:
        return bool(program(f"nearfield-bench-{abi}"))
    except NotBuilt:
        return False


def _free_memory() -> float:
    """Bytes of memory that are free, or infinity where the system does not say."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB", text_of(Path("/proc/meminfo")), re.MULTILINE)
    return float(found[1]) * 1024 if found else float("inf")
