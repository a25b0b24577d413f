"""`nearfield demo`: one program for real, and pages of figures that were made up."""

import json
import re
from pathlib import Path

import pytest

from bench.apps import APPS
from bench.demo import PROGRAMS, carried_by, run_demo
from bench.demo_figures import OPERATIONS, Program, ratios_of
from bench.demo_page import write_demo
from nearfield.statistics import Function, Operation, Statistics
from nearfield.summary import speed_word
from tests.command.pages import check_page
from tests.selection import per_change

COUNTS = {
    "messages_by_fastboxes": 4597,
    "messages_by_the_queue": 4,
    "messages_direct": 0,
    "messages_by_copy_buffers": 1970,
    "messages_to_the_host": 5,
}


OPERATIONS_COUNTED = {
    "barrier": Operation(3, 0, 0.002386, 1, {"no algorithm": 1}),
    "allreduce": Operation(10, 80, 0.008958, 0, {}),
}
FUNCTIONS = {"MPI_Cart_sub": Function(2, 0.011637)}
STATISTICS = Statistics("node", 1, 0, 2, OPERATIONS_COUNTED, FUNCTIONS, {}, COUNTS)
TEXT = "nearfield: rank 0 of 2\n  allreduce"


def test_what_was_carried_is_summed_up() -> None:
    read = carried_by(STATISTICS, TEXT)
    assert (read.collectives, read.messages, read.to_host) == (12, 4601, 6)
    assert read.ways == "fastboxes 4597, the queue 4, copy buffers 1970" and read.text == TEXT


@pytest.mark.parametrize(("ratio", "word"), [(2.0, "0.50"), (1.0, "1.00"), (0.5, "2.0"), (0.04, "25")])
def test_speeds_are_told_with_the_digits_that_matter(ratio: float, word: str) -> None:
    assert speed_word(ratio) == word


def rows_of(program: Program, ranks: int, ratio: float) -> list[dict]:
    about = {"app": program.app, "ranks": ranks, "host": "mpich", "version": "5 <beta>", "pinned": ranks == 2}
    about |= {"calls": 7.0, "bytes": 4096.0}
    rows = []
    for mode, factor in (("plain", 1.0), ("nearfield", ratio)):
        row: dict = about | {"mode": mode}
        for key in ("seconds", "cpu", "mpi", "share"):
            row |= {f"{key}{end}": 0.25 * factor for end in ("", "_lower", "_upper")}
        rows.append(row)
    return rows


def cell(operation: str, ranks: int, size: int, ratio: float) -> list[dict]:
    about = {
        "op": operation,
        "ranks": ranks,
        "bytes": size,
        "host": "mpich",
        "version": "5",
        "buffers": "used",
    }
    about |= {"state": "near", "algorithm": "slots"}
    return [
        about | {"mode": mode, "median": time, "lower": time, "upper": time}
        for mode, time in (("plain", 8.0), ("nearfield", 8.0 * ratio))
    ]


def test_the_page_shows_gains_and_losses(tmp_path: Path) -> None:
    rows = [row for n, program in enumerate(PROGRAMS) for row in rows_of(program, 2, 1.25 if n == 1 else 0.5)]
    rows += [row for program in PROGRAMS for row in rows_of(program, 8, 0.1)]
    operations = cell("bcast", 2, 8, 0.04) + cell("bcast", 2, 1 << 20, 1.5) + cell("bcast", 8, 8, 0.5)
    assert ratios_of(operations, 2) == {"bcast": pytest.approx({8: 0.04, 1 << 20: 1.5})}
    out = tmp_path / "report.html"
    carried = {program.app: carried_by(STATISTICS, TEXT) for program in PROGRAMS}
    write_demo(out, rows, operations, PROGRAMS, carried)
    check_page(
        out,
        *(one.title for one in PROGRAMS),
        *(
            "5 <beta>",
            "2 ranks with a CPU each",
            "8 ranks",
            "10.0 times",
            "2.00 times as fast",
            "0.80 times as fast",
        ),
        *("25", "0.67"),
    )
    (over,) = re.findall(r'class="part over" style="width: ([\d.]+)%', out.read_text())
    assert over == "100.0" and 'class="whole" style="width: 80.0%"' in out.read_text()


@pytest.mark.parametrize("operations", per_change([("latency", "bcast"), OPERATIONS]), ids=["two", "all"])
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
