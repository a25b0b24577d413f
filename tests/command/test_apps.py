"""bench/apps.py: applications plain and under Nearfield, and what it says."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import apps
from tests.mpi.jobs import ROOT
from tests.nodes.bed import Nodes
from tests.nodes.beds import made_or_skip
from tests.selection import FULL


def script(*arguments: str) -> subprocess.CompletedProcess:
    words = [sys.executable, str(ROOT / "bench/apps.py"), *arguments]
    return subprocess.run(words, capture_output=True, text=True)


def measured(tmp_path: Path, *arguments: str) -> tuple[list[dict], str]:
    """Its rows, and what was printed."""
    rows = tmp_path / "rows.json"
    done = script(*arguments, "--json", str(rows))
    assert done.returncode == 0, done.stderr
    return json.loads(rows.read_text()), done.stdout


APP_FIGURES = ("seconds", "cpu", "mpi", "mpi_most")


def expect_cells(rows: list[dict], cells: set[tuple[str, str]], about: dict) -> None:
    """Each cell, a form and a host, was measured both ways and is what `about` says."""
    for mode in ("plain", "nearfield"):
        found = [row for row in rows if row["mode"] == mode]
        assert {(row["form"], row["host"]) for row in found} == cells and len(found) == len(cells)
    for row in rows:
        assert row.items() >= about.items() and all(row[key] > 0 for key in APP_FIGURES), row
        for key in (*APP_FIGURES, "share"):
            assert row[f"{key}_lower"] <= row[key] <= row[f"{key}_upper"], row
        assert 0 < row["share"] < 1 and row["calls"] > 0, row
        assert row["bytes"] > 0 or row["form"] == "shared", row  # whose lines are read where they lie
        assert row["pinned"] == (row["nodes"] == 1 and row["ranks"] <= len(os.sched_getaffinity(0)))


@pytest.mark.parametrize(
    ("app", "points", "numbers", "hosts", "forms", "shape"),
    [
        ("fft", [16], [2], ["mpich"], [""], "16^3"),
        ("matmul", [48], [3], ["mpich"], ["bcast", "allreduce"], "48 x 48"),
        ("stencil", [30, 31], [2, 3], ["mpich"], ["put", "shared"], "31 x 31"),
        ("mesh", [4], [2], ["mpich"], [""], "blocks of 4^3"),
        ("training", [2], [2], ["openmpi"], [""], "2 channels"),
    ],
)
def test_applications_are_run(
    tmp_path: Path,
    app: str,
    points: list[int],
    numbers: list[int],
    hosts: list[str],
    forms: list[str],
    shape: str,
) -> None:
    options = {"--points": points, "--ranks": numbers, "--hosts": hosts, "--form": forms}
    arguments = [app]
    arguments += [word for name, values in options.items() for word in (name, ",".join(map(str, values)))]
    rows, shown = measured(tmp_path, *arguments, "--panel", "9", "--loops", "2", "--runs", "1")
    assert shape in shown and len(rows) == 2 * len(points) * len(numbers) * len(hosts) * len(forms)
    for n, p in itertools.product(points, numbers):
        found = [row for row in rows if (row["points"], row["ranks"]) == (n, p)]
        about = {"app": app, "nodes": 1, "loops": 2, "runs": 1, "heap": "shared"}
        expect_cells(found, set(itertools.product(forms, hosts)), about)


def test_applications_have_to_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        apps,
        "_run",
        lambda cell, *_: dict.fromkeys(apps.FIGURES + apps.COUNTS, "1") | {"checksum": cell.form},
    )
    assert len(apps.compare("stencil", [2, 4], ["mpich"], forms=["put"])) == 8
    with pytest.raises(ValueError, match="the results of stencil shared 256, 2 ranks, mpich .* differ"):
        apps.compare("stencil", [2], ["mpich"], forms=["put", "shared"])


def test_it_says_which_applications_there_are() -> None:
    for arguments, word in (
        (("lu"), "choose from"),
        (("matmul", "--form", "cannon"), "allgather"),
        (("fft", "--form", "bcast"), "fft has no form bcast"),
        (("stencil", "--points", "1"), "1 x 1 cells cannot be divided among 2 ranks"),
        (("fft", "--points", "17"), "17 points do not divide"),
        (("mesh", "--points", "5"), "mesh [--size even"),
        (("matmul", "--nodes", "3"), "2 ranks are too few for 3 nodes"),
    ):
        done = script(*arguments)
        assert done.returncode == 2 and word in done.stderr, done.stderr


@FULL
@pytest.mark.parametrize(("app", "ranks", "form"), [("matmul", 3, "allgather"), ("stencil", 4, "shared")])
def test_applications_are_run_over_nodes(tmp_path: Path, app: str, ranks: int, form: str) -> None:
    with made_or_skip(Nodes(1)):
        pass
    arguments = ("--nodes", "2", "--ranks", str(ranks), "--points", "48", "--form", form)
    rows, _ = measured(tmp_path, app, *arguments, "--loops", "1", "--runs", "1")
    expect_cells(rows, {(form, "mpich")}, {"nodes": 2, "ranks": ranks})
