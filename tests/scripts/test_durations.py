"""What the budget of the tests says of stages that have grown."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def status(results: Path, tests: int) -> tuple[int, str]:
    """Of the stage `nodes` with so many tests."""
    cases = '<testcase classname="tests" name="one" time="0.1" />' * tests
    (results / "pytest-nodes.xml").write_text(f"<testsuite>{cases}</testsuite>")
    (results / "stages").write_text("nodes 5\n")
    script = [sys.executable, ROOT / "scripts/durations.py", results, "--budget"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_a_stage_that_has_grown_by_more_than_a_tenth_fails(tmp_path: Path) -> None:
    assert status(tmp_path, 77)[0] == 0
    code, text = status(tmp_path, 86)
    assert code == 1
    assert "nodes has 86 tests, a tenth more than 77" in text
