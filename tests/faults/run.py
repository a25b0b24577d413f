"""Applies each seeded fault in a copy of the checkout, and says which tier of the tests finds it, by which test.

    .venv/bin/python -m tests.faults.run [--whole] [--scratch DIRECTORY] [FAULT...]

A fault counts as found by a tier when a test that belongs to it (what is not marked, or labelled, `full` belongs to
`make test`) fails with the patch and passes without it. The tests that are tried are those that the patch names; `--whole`
runs all of both tiers instead. A fault is named by its number or a part of its name; by default all are run. The copy is
built incrementally and stays in the scratch directory; what is found goes to RESULTS.md. The checkout is left alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tests.faults.seeded import PATCHES, PRESETS, Fault, Finder, all_faults
from tests.mpi.jobs import kill_tree

ROOT = PATCHES.parents[1]
TIERS = ("make test", "make test-all")
LIMIT = 600  # seconds that one run of tests may take; what hangs for so long has failed
# What tests of MPICH and of the command start.
PROGRAMS = ("bench-mpich", "model", "probe", "run", "scenarios-mpich", "simulate")
SHIM = ("nearfield", "nearfield-heap", "nearfield-mpich", *(f"nearfield-{name}" for name in PROGRAMS))
NO_TESTS = 5  # pytest's exit status


@dataclass(frozen=True)
class Outcome:
    """What became of tests: whether there were any, and the first that failed."""

    any: bool
    failed: str = ""


@dataclass(frozen=True)
class Result:
    """What is known of a fault; `tier` is empty where nothing finds it."""

    tier: str
    test: str
    seconds: float


class Copy:
    """The checkout once more, in its present state, where patches are applied."""

    def __init__(self, scratch: Path) -> None:
        self.tree = scratch / "tree"
        self.log = scratch / "log"
        self.revision = git(ROOT, "stash", "create").strip() or git(ROOT, "rev-parse", "HEAD").strip()
        scratch.mkdir(parents=True, exist_ok=True)
        if not self.tree.exists():
            git(ROOT, "clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(self.tree))
        git(self.tree, "checkout", "--quiet", "--force", "--detach", self.revision)
        for name in (".venv", ".hosts"):
            if not (self.tree / name).exists():
                (self.tree / name).symlink_to((ROOT / name).resolve())

    def apply(self, fault: Fault) -> None:
        git(self.tree, "apply", str(fault.path))

    def revert(self) -> None:
        git(self.tree, "checkout", "--quiet", "--force", self.revision, "--", ".")

    def run(self, command: list[str], limit: float = LIMIT, **more: str) -> tuple[int, str]:
        """Exit status, None for what was ended after `limit` seconds, and what it said."""
        # The tree's package, not the one that the environment has installed.
        env = os.environ | {"PYTHONPATH": str(self.tree)} | more
        with tempfile.TemporaryFile("w+") as out:
            job = subprocess.Popen(
                ["nice", *command],
                cwd=self.tree,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
            try:
                status = job.wait(limit)
            except subprocess.TimeoutExpired:
                kill_tree(job.pid)  # jobs have sessions of their own
                job.wait()
                status = None
            out.seek(0)
            text = out.read()
        with self.log.open("a") as log:
            print(f"== {shlex.join(command)}: {status}\n{text}", file=log)
        return status, text

    def build(self, preset: str, targets: Iterable[str]) -> None:
        """Raises RuntimeError with what the compiler says."""
        directory = self.tree / "build" / preset
        if not (directory / "build.ninja").exists():
            self.must(["cmake", "--preset", preset])
        self.must(["ninja", "-C", str(directory), "--quiet", *targets])

    def must(self, command: list[str]) -> str:
        status, text = self.run(command, limit=3600)
        if status != 0:
            raise RuntimeError(f"{shlex.join(command)}:\n{text[-4000:]}")
        return text

    # ---- tests

    def gtest(self, preset: str, programs: str, tests: str, tier: str) -> Outcome:
        directory = self.tree / "build" / preset
        if not (directory / "build.ninja").exists():
            self.must(["cmake", "--preset", preset])
        known = set(re.findall(r"/bin/([\w.-]+)\"", (directory / "CTestTestfile.cmake").read_text()))
        wanted = sorted(name for name in known if re.fullmatch(programs, name))
        if not wanted:  # without a target all would be built
            return Outcome(False)
        self.build(preset, wanted)
        label = "-LE" if tier == TIERS[0] else "-L"
        listed = self.must(["ctest", "--test-dir", str(directory), "--show-only=json-v1", label, "^full$"])
        commands = {}
        for test in json.loads(listed[listed.index("{") :])["tests"]:
            command = test.get("command", [])
            commands |= {name: command for name in wanted if any(w.endswith(f"/bin/{name}") for w in command)}
        outcomes = [self.filtered(command, tests) for command in commands.values()]
        return next((o for o in outcomes if o.failed), Outcome(any(o.any for o in outcomes)))

    def filtered(self, command: list[str], tests: str) -> Outcome:
        """Some tests of a program."""
        arguments = [word for word in command if not word.startswith("--gtest_filter")]
        status, text = self.run([*arguments, f"--gtest_filter={tests}"])
        if status == 0:
            return Outcome(bool(re.search(r"Running [1-9]\d* tests? from", text)))
        failed = (
            re.findall(r"\[  FAILED  \] ([\w./]+)", text) or re.findall(r"\[ RUN      \] (.+)", text)[-1:]
        )
        return Outcome(True, f"{failed[0] if failed else command[0]}{' (hangs)' * (status is None)}")

    def proof(self, protocol: str, tests: str, tier: str) -> Outcome:
        """A model. That its record is out of date alone counts for nothing."""
        if tier != TIERS[0]:
            return Outcome(False)
        program = f"model_{protocol}"
        self.build("release", [program])
        return self.filtered([f"build/release/bin/{program}"], tests)

    def pytest(self, arguments: list[str], tier: str) -> Outcome:
        self.build("release", SHIM)  # tests that patches name are MPICH's
        marks = "not full" if tier == TIERS[0] else "full"
        python = [".venv/bin/python", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
        status, text = self.run([*python, "-m", marks, *arguments])
        if status == 1:
            failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)
            return Outcome(True, failed[0] if failed else " ".join(arguments))
        if status is None:
            return Outcome(True, f"{' '.join(arguments)} (hangs)")
        if status not in (0, NO_TESTS):
            raise RuntimeError(f"pytest {shlex.join(arguments)}:\n{text[-4000:]}")
        return Outcome(status == 0)

    def try_finder(self, finder: Finder, tier: str) -> Outcome:
        if finder.kind == "pytest":
            return self.pytest(list(finder.words), tier)
        run = self.proof if finder.kind == "proof" else self.gtest
        return run(*finder.words, tier)

    def try_all(self, tier: str) -> Outcome:
        """All tests of a tier, until one fails."""
        for preset in PRESETS:
            if preset == "ubsan":  # for the heap's tests alone, which release has as well
                continue
            self.build(preset, [])
            label = "-LE" if tier == TIERS[0] else "-L"
            run = [
                "ctest",
                "--test-dir",
                f"build/{preset}",
                "-j2",
                "--stop-on-failure",
                "--output-on-failure",
                label,
                "^full$",
            ]
            status, text = self.run(run, limit=7200)
            if status != 0:
                failed = re.findall(r"\[  FAILED  \] ([\w./]+)|- (\S+) \(", text)
                return Outcome(True, f"{preset}: {next(filter(None, failed[0]), '') if failed else 'ctest'}")
        return self.pytest(["tests", "--ignore", "tests/guest", "--timeout", "900"], tier)


def git(where: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(where), *arguments], check=True, capture_output=True, text=True
    ).stdout


def baselines(
    copy: Copy, finders: Iterable[Finder], scratch: Path, say: Callable[[str], None]
) -> dict[str, bool]:
    """Of each finder, whether its tests pass without any patch; what is known of this revision is not run again."""
    file = scratch / f"passes-{copy.revision}.json"
    known: dict[str, bool] = json.loads(file.read_text()) if file.exists() else {}
    for finder in dict.fromkeys(finders):
        if str(finder) in known:
            continue
        outcomes = [copy.try_finder(finder, tier) for tier in TIERS]
        failed = [outcome.failed for outcome in outcomes if outcome.failed]
        if not any(outcome.any for outcome in outcomes):
            say(f"{finder}: there are no such tests")
        elif failed:
            say(f"{finder}: fails without any fault: {failed[0]}")
        if not failed:
            known[str(finder)] = any(outcome.any for outcome in outcomes)
            file.write_text(json.dumps(known))
    return known


def find(copy: Copy, fault: Fault, passes: dict[str, bool], whole: bool) -> Result:
    """Which tier finds the fault. Raises RuntimeError where it does not compile."""
    copy.apply(fault)
    start = time.monotonic()
    try:
        for tier in TIERS:
            usable = [finder for finder in fault.finders if passes.get(str(finder))]
            tries = [copy.try_all(tier)] if whole else (copy.try_finder(finder, tier) for finder in usable)
            for outcome in tries:
                if outcome.failed:
                    return Result(tier, outcome.failed, time.monotonic() - start)
        return Result("", "", time.monotonic() - start)
    finally:
        copy.revert()


def write_results(faults: list[Fault], results: dict[str, Result]) -> None:
    """Writes RESULTS.md."""
    found = {tier: sum(result.tier == tier for result in results.values()) for tier in TIERS}
    lines = [
        "# Seeded faults, and what finds them",
        "",
        f"Written by tests/faults/run.py. Of {len(faults)} faults `make test` finds {found[TIERS[0]]}, "
        f"`make test-all` {sum(found.values())}. Seconds are those of building with the patch and of its tests until one fails.",
        "",
        "| fault | area | class | found by | test | seconds |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for fault in faults:
        result = results.get(fault.name)
        tier, test, took = (
            ("not run", "", "")
            if not result
            else (result.tier or "**nothing**", result.test, f"{result.seconds:.0f}")
        )
        test = test.replace("|", "\\|")
        lines.append(f"| {fault.name} | {fault.area} | {fault.kind} | {tier} | {test} | {took} |")
    (PATCHES / "RESULTS.md").write_text("\n".join(lines) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("faults", nargs="*", help="numbers, or parts of names")
    parser.add_argument(
        "--whole", action="store_true", help="all tests of both tiers, not those that patches name"
    )
    parser.add_argument("--scratch", type=Path, default=ROOT / "build" / "faults")
    options = parser.parse_args()
    faults = all_faults()
    chosen = [f for f in faults if not options.faults or any(word in f.name for word in options.faults)]
    copy = Copy(options.scratch.resolve())
    file = options.scratch / "results.json"
    results = {
        name: Result(**fields)
        for name, fields in (json.loads(file.read_text()) if file.exists() else {}).items()
    }
    results = {name: result for name, result in results.items() if name in {fault.name for fault in faults}}

    def say(text: str) -> None:
        print(text, flush=True)

    copy.revert()
    passes = (
        {}
        if options.whole
        else baselines(copy, [f for each in chosen for f in each.finders], options.scratch, say)
    )
    bad = False
    for fault in chosen:
        try:
            result = find(copy, fault, passes, options.whole)
        except RuntimeError as error:
            say(f"{fault.name}: {error}")
            bad = True
            continue
        results[fault.name] = replace(result, seconds=round(result.seconds))
        bad |= not result.tier
        say(f"{fault.name}: {result.tier or 'NOTHING FINDS IT'} {result.test} ({result.seconds:.0f} s)")
        file.write_text(json.dumps({name: asdict(each) for name, each in results.items()}, indent=1))
        write_results(faults, results)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
