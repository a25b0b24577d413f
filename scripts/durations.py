"""Prints what took how long: the seconds of every stage of the tests, and the twenty slowest tests.

python3 scripts/durations.py DIRECTORY [--budget]: with `stages`, lines of a name and seconds, and JUnit's XML of CTest and
pytest. --budget: fails if a stage runs a tenth more tests than tests/budget.toml allows, or compiles a tenth more object
files. It does not compare times, since these depend on the machine.
"""

from __future__ import annotations

import re
import sys
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SLOWEST = 20
OBJECT = re.compile(r"^build [^:]*\.o: (?:ASM|C|CXX)_COMPILER", re.MULTILINE)


def tests_of(report: Path) -> list[tuple[float, str]]:
    """Seconds and name of each test in one file of results."""
    runner = report.stem.partition("-")[2]
    cases = ElementTree.parse(report).iter("testcase")
    return [
        (float(case.get("time", 0)), f"{runner}: {case.get('classname', '')}.{case.get('name')}")
        for case in cases
    ]


def beyond_budget(stages: list[str], tests: list[tuple[float, str]]) -> list[str]:
    """A line for each figure of tests/budget.toml that is exceeded by more than a tenth: tests that ran, objects of stages."""
    lines = []
    for runner, figures in tomllib.loads((ROOT / "tests/budget.toml").read_text()).items():
        counts = {"tests": sum(name.startswith(f"{runner}: ") for _, name in tests)}
        if "objects" in figures and runner in stages:
            counts["objects"] = len(OBJECT.findall((ROOT / f"build/{runner}/build.ninja").read_text()))
        for what, most in figures.items():
            if counts.get(what, 0) > 1.1 * most:
                lines.append(f"{runner} has {counts[what]} {what}, a tenth more than {most}")
    return lines


def main() -> int:
    """Prints the tables. Returns the exit status."""
    results = Path(sys.argv[1])
    stages = [line.split() for line in (results / "stages").read_text().splitlines()]
    tests = [test for report in sorted(results.glob("*.xml")) for test in tests_of(report)]
    print(f"== the {SLOWEST} slowest of {len(tests)} tests, seconds")
    for seconds, name in sorted(tests, reverse=True)[:SLOWEST]:
        print(f"{seconds:8.1f}  {name}")
    print("== stages, seconds")
    for name, seconds in stages:
        print(f"{int(seconds):6d}  {name}")
    print(f"{sum(int(seconds) for _, seconds in stages):6d}  in all")
    if "--budget" not in sys.argv[2:]:
        return 0
    beyond = beyond_budget([name for name, _ in stages], tests)
    if beyond:
        print("== beyond tests/budget.toml, which a commit may raise that says why", *beyond, sep="\n")
    return bool(beyond)


if __name__ == "__main__":
    sys.exit(main())
