"""Jobs of the compiled scenarios (tests/mpi/scenarios): several run in one job, one after the other, each with its own verdict."""

from __future__ import annotations

import functools
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.mpi.jobs import EVERYTHING, HOSTS, LIBRARY, Completed, Served, compiled, launch

SOURCES = sorted((Path(__file__).parent / "scenarios").glob("*.[ch]"))
VERDICT = re.compile(r"scenario (\d+) \S+: (good|wrong)$")
# A scenario's name and its arguments, separated by blanks, or as a list.
Scenario = str | list[str]


@dataclass
class Outcome:
    """What became of one scenario."""

    scenario: Scenario
    good: bool
    lines: list[str]  # what the scenario has printed
    job: Completed


@functools.cache
def program(host: str) -> str:
    """The scenarios for a host: those of the build, or, for hosts with other headers than the build's, compiled here."""
    built = LIBRARY.parents[1] / "bin" / f"nearfield-scenarios-{HOSTS[host].abi}"
    if host in ("mpich", "openmpi") and built.exists():
        changed = [one.name for one in SOURCES if one.stat().st_mtime > built.stat().st_mtime]
        assert not changed, f"{built.name} is older than {changed}: run `make build`"
        return str(built)
    sources = [str(one) for one in SOURCES if one.suffix == ".c"]
    arguments = [
        "-O1",
        "-g1",
        "-std=gnu17",
        "-D_GNU_SOURCE",
        f"-I{HOSTS[host].include}",
        *sources,
        str(HOSTS[host].library),
    ]
    return compiled(f"scenarios-{host}", (*arguments, "-ldl", "-lm", "-lpthread"))


def words(scenario: Scenario) -> list[str]:
    """The words of the command line."""
    return scenario.split() if isinstance(scenario, str) else scenario


def command_line(host: str, *scenarios: Scenario, threads: bool = False, out: str = "") -> list[str]:
    """The program that runs the scenarios in one job, whose output goes to the file `out` where it is given."""
    line = [program(host), *(["--threads"] if threads else []), *(["--out", out] if out else [])]
    for number, scenario in enumerate(scenarios):
        line += [*(["+"] if number else []), *words(scenario)]
    return line


def outcomes(scenarios: tuple[Scenario, ...], job: Completed) -> list[Outcome]:
    """Those that a job has come to: of the first that has no verdict it ended, or did not come to an end."""
    found: list[Outcome] = []
    lines: list[str] = []
    for line in job.stdout.splitlines():
        if verdict := VERDICT.match(line):
            found.append(Outcome(scenarios[len(found)], verdict[2] == "good", lines, job))
            lines = []
        else:
            lines.append(line)
    if len(found) < len(scenarios):
        found.append(Outcome(scenarios[len(found)], False, lines, job))
    elif job.timed_out or (job.returncode != 0 and all(one.good for one in found)):
        found[-1].good = False  # at its end
    found[-1].lines += lines if found[-1].lines is not lines else []
    return found


def run_scenarios(
    host: str,
    ranks: int,
    *scenarios: Scenario,
    env: dict[str, str] | None = None,
    timeout: float = 120,
    threads: bool = False,
    nearfield: bool = True,
    served: Served = EVERYTHING,
    before: tuple[str, ...] = (),
    statistics: bool = False,
) -> list[Outcome]:
    """Runs scenarios in one job, and, where one of them ends it, those behind in another; `before` are words before the program.

    `threads`: under MPI_THREAD_MULTIPLE. A rank that waits longer than a third of the time writes a hang report.
    """
    env = {"NEARFIELD_STALL_SECONDS": str(timeout / 3)} | (env or {})
    found: list[Outcome] = []
    while len(found) < len(scenarios):
        rest = scenarios[len(found) :]
        with tempfile.NamedTemporaryFile("r") as out:
            line = [*before, *command_line(host, *rest, threads=threads, out=out.name)]
            job = launch(host, ranks, line, env, timeout, nearfield, served=served, statistics=statistics)
            job.stdout += out.read()
        found += outcomes(rest, job)
    return found


def good_scenarios(host: str, ranks: int, *scenarios: Scenario, **options: object) -> list[Outcome]:
    """The same; all of them have to be good."""
    found = run_scenarios(host, ranks, *scenarios, **options)
    wrong = [f"{' '.join(words(one.scenario))}:\n{one.job.text[-3000:]}" for one in found if not one.good]
    assert not wrong, "\n".join(wrong)
    return found
