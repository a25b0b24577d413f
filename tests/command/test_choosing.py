"""bench/choosing.py: what it says of the machine, the model and the trials."""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from nearfield import machine
from tests.mpi.jobs import ROOT

SCRIPT = ROOT / "bench" / "choosing.py"


@pytest.fixture
def info(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What /proc/cpuinfo says from now on; there is nothing else."""
    path = tmp_path / "cpuinfo"

    def say(text: str) -> None:
        path.write_text(text)
        machine.machine.cache_clear()
        machine.describe_machine.cache_clear()

    monkeypatch.setattr(machine, "CPUS", tmp_path / "cpus")
    monkeypatch.setattr(machine, "CPU_INFO", path)
    yield say
    monkeypatch.undo()
    machine.machine.cache_clear()
    machine.describe_machine.cache_clear()


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("INTEL(R) XEON(R) PLATINUM 8581C CPU @ 2.30GHz", "intel-xeon-platinum-6-207"),
        ("AMD EPYC 9B14 96-Core Processor", "amd-epyc-9b14-6-207"),
    ],
)
def test_files_are_named_by_the_machine(info, name: str, word: str) -> None:
    info(f"model name\t: {name}\ncpu family\t: 6\nmodel\t: 207\n")
    assert machine.machine_word() == word
    assert f"{name} (family 6, model 207)" in machine.describe_machine()


def test_a_sandbox_that_tells_nothing_is_described(info) -> None:
    info("")
    assert machine.describe_machine().startswith("unknown CPU, ")
    assert machine.machine()["caches"] == [] and machine.machine_word() == "unknown"
    shown = machine.CPUS / f"cpu{min(os.sched_getaffinity(0))}" / "cache" / "index0"
    shown.mkdir(parents=True)
    (shown / "level").write_text("3\n")
    (shown / "size").write_text("260M\n")  # neither its kind nor who shares it
    info("")
    assert machine.machine()["caches"] == ["L3 260M"]


def cell(op: str, model: str, **times: tuple[float, float]) -> dict:
    """Measured and estimated microseconds of each algorithm."""
    forced = {name: measured for name, (measured, _) in times.items()}
    best = min(forced, key=forced.__getitem__)
    about = {"op": op, "ranks": 2, "bytes": 8, "state": "50 ns", "model": model, "chosen": best, "best": best}
    about |= {"model_ratio": forced[model] / forced[best], "ratio": 1.0, "trials": 0.001}
    return about | {"forced_us": forced, "estimated_us": {name: one for name, (_, one) in times.items()}}


def test_what_the_model_gets_wrong_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    choosing = SimpleNamespace(**runpy.run_path(str(SCRIPT)))
    wrong = cell("bcast", "slots", slots=(2.0, 0.5), line=(1.0, 1.1))
    right = cell("reduce", "slots", slots=(1.0, 0.9), line=(1.2, 1.3))
    choosing.show([wrong, right])
    choices, estimates, counts = capsys.readouterr().out.strip().split("\n\n")
    assert "2.00" in choices and "bcast" in choices and "reduce" not in choices
    assert [line.split()[:4] for line in estimates.splitlines()[2:]] == [["bcast", "2", "slots", "0.25"]]
    assert "the model: of 2 cells 1 within 5%, 1 within 10%, 1 within 30%" in counts
    choosing.show([right])
    assert "more than" not in capsys.readouterr().out


def test_it_ends_when_its_minutes_have_passed(tmp_path: Path) -> None:
    arguments = ["--op", "bcast,scan", "--sizes", "8", "--minutes", "0.001", "--out", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    # No job starts in 60 ms; the first one has some seconds more.
    assert "minutes did not suffice for" in done.stdout and "scan on 2 ranks from 8 B on" in done.stdout
    for path in tmp_path.iterdir():
        written = json.loads(path.read_text())
        assert path.name == f"choosing-{machine.machine_word()}-2-ranks.json"
        assert written["machine"]["cpus"] > 0 and [one["op"] for one in written["cells"]] == ["bcast"]
        assert all(one["ratio"] >= 1 and one["best"] in one["forced_us"] for one in written["cells"])
