"""`nearfield demo`: one program for real, and pages of figures that were made up."""

import json
from pathlib import Path

import pytest

from bench.apps import APPS
from bench.demo import PROGRAMS, run_demo
from bench.demo_figures import OPERATIONS, Program
from tests.command.pages import check_page
from tests.selection import per_change


@pytest.mark.parametrize(
    "operations",
    per_change([pytest.param(("latency", "bcast")), pytest.param(OPERATIONS)]),
    ids=["two", "all"],
)
def test_it_runs(
    operations: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("bench.demo.OPERATIONS", operations)
    out = tmp_path / "report.html"
    run_demo(out, True, (Program("mesh", "adaptive mesh", 4, 2),))
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
    assert {row["mode"] for row in stored["programs"]} == {"plain", "heap", "mpi", "nearfield"}
    assert {row["op"] for row in stored["operations"]} == set(operations)
    assert set(APPS) == {program.app for program in PROGRAMS}
