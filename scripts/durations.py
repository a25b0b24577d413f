"""Prints what took how long: the seconds of every stage of the tests, and the twenty slowest tests.

python3 scripts/durations.py DIRECTORY: with `stages`, lines of a name and seconds, and JUnit's XML of CTest and pytest.
"""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

SLOWEST = 20


def tests_of(report: Path) -> list[tuple[float, str]]:
    """Seconds and name of each test in one file of results."""
    runner = report.stem.partition("-")[2]
    cases = ElementTree.parse(report).iter("testcase")
    return [
        (float(case.get("time", 0)), f"{runner}: {case.get('classname', '')}.{case.get('name')}")
        for case in cases
    ]


def main() -> None:
    """Prints the tables."""
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


if __name__ == "__main__":
    main()
