"""`nearfield demo`: one program for real, and pages of figures that were made up."""

import json
from pathlib import Path

import pytest

from bench.apps import APPS, BOTH, MODES, PLAIN
from bench.demo import PROGRAMS, run_demo
from bench.demo_figures import OPERATIONS, Program
from tests.command.pages import check_page
from tests.selection import per_change


@pytest.mark.parametrize(
    ("full", "operations", "modes"),
    per_change([(False, ("latency", "bcast"), (PLAIN, BOTH)), (True, OPERATIONS, MODES)]),
    ids=["short", "full"],
)
def test_it_runs(
    full: bool,
    operations: tuple[str, ...],
    modes: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("bench.demo.OPERATIONS", operations)
    out = tmp_path / "report.html"
    run_demo(out, full, (Program("mesh", "adaptive mesh", 4, 2),))
    told = capsys.readouterr().out
    for question in (
        "What would my program gain?",
        "When?",
        "Why?",
        "Is it safe?",
        "to the last bit: adaptive mesh",
    ):
        assert question in told
    check_page(out, "adaptive mesh")
    stored = json.loads(out.with_suffix(".json").read_text())
    assert {row["mode"] for row in stored["programs"]} == set(modes)
    assert {row["op"] for row in stored["operations"]} == set(operations)
    assert set(APPS) == {program.app for program in PROGRAMS}
