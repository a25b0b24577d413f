"""`nearfield run --report`, `--trace` and `nearfield report`: the page, its JSON, and what is said where there is none."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from nearfield.recording import total
from nearfield.report import parts_of
from tests.command.calling import COMMAND, nearfield
from tests.command.pages import check_page
from tests.mpi.jobs import HOSTS, compile_c, hosts, python_of


def launcher(host: str, ranks: int) -> list[str]:
    """The launcher's part of a command line."""
    return [*(str(HOSTS[host].mpiexec), *HOSTS[host].options), "-n", str(ranks)]


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_a_run_is_reported(host: str, tmp_path: Path) -> None:
    page, trace = tmp_path / "page.html", tmp_path / "trace.json"
    program = compile_c(host, "recorded.c")
    done = nearfield(
        *("run", "--report", str(page), f"--trace={trace}", "--host", host),
        *launcher(host, 2),
        *(program, "all", "20000"),
    )
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "page.json", "trace.json"]
    (world,) = json.loads((tmp_path / "page.json").read_text())["worlds"]
    sums = [row for row in world["rows"] if row["site"].startswith("sums (recorded.c:")]
    assert total(sums, "calls") == 20 and total(sums, "bytes") == 20 * 1024
    for rank in world["ranks"]:
        assert sum(parts_of(world, rank).values()) == pytest.approx(rank["seconds"], rel=0.01)
    check_page(
        page, "recorded.c", "MPI_Allreduce", "sums", "MPI_File_open", "waited longest for rank 1", "pairs"
    )
    # Of a bar its name, itself and its time, in the order of the grid's columns.
    for rank in world["ranks"]:
        bar = rf'<div class="name">rank {rank["rank"]}</div>\s*<div class="bar parts"[^>]*>.*</div>\s*<div>[\d.]+ \w+</div>'
        assert re.search(bar, page.read_text())
    events = json.loads(trace.read_text())["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X"}
    assert sum(event["name"] == "MPI_Allreduce" for event in events) == 20
    page.unlink()
    again = nearfield("report", str(tmp_path / "page.json"))
    assert again.returncode == 0, again.stderr
    check_page(page, "recorded.c", "MPI_Allreduce")


def test_names_are_only_text(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    script = "from mpi4py import MPI; c = MPI.COMM_WORLD.Dup(); c.Set_name('<b>&\"\\u00fc</b>'); c.Barrier()"
    done = nearfield(
        "run",
        "--report",
        str(page),
        "--host",
        "mpich",
        *launcher("mpich", 2),
        python_of("mpich"),
        "-c",
        script,
    )
    assert done.returncode == 0, done.stderr
    check_page(page, '<b>&"\u00fc</b>')
    (world,) = json.loads(page.with_suffix(".json").read_text())["worlds"]
    assert '<b>&"\u00fc</b>' in {one["name"] for one in world["communicators"]}


def test_what_cannot_be_written_at_the_end_is_kept(tmp_path: Path) -> None:
    page, program = tmp_path / "page.html", compile_c("mpich", "recorded.c")
    job = f"{' '.join(launcher('mpich', 2))} {program} all 0; mkdir {tmp_path}/page.json; exit 5"
    done = nearfield("run", "--report", str(page), "--host", "mpich", "sh", "-c", job)
    assert done.returncode == 5, done.stderr
    assert f"cannot write {tmp_path}/page.json: Is a directory" in done.stderr and "start" not in done.stderr
    kept = Path(done.stderr.rpartition("stay in ")[2].strip())
    assert kept.parent == tmp_path and len(list(kept.glob("*.json"))) == 2


def test_a_job_that_is_killed_at_once_is_known_but_has_no_trace(tmp_path: Path) -> None:
    page, trace, program = tmp_path / "page.html", tmp_path / "trace.json", compile_c("mpich", "recorded.c")
    options = ("run", "--report", str(page), "--trace", str(trace), "--host", "mpich", *launcher("mpich", 2))
    done = nearfield(*options, program, "dies")
    assert "no trace" in done.stderr and not trace.exists(), done.stderr
    check_page(page, "was killed")


def test_a_program_without_mpi_has_no_report(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = nearfield("run", "--report", str(page), "sh", "-c", "echo out; exit 7")
    assert (done.returncode, done.stdout) == (7, "out\n")
    assert "no report" in done.stderr and not list(tmp_path.iterdir())


def test_a_launcher_that_is_killed_is_reported(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    job = subprocess.Popen(
        [
            COMMAND,
            "run",
            "--report",
            str(page),
            "--host",
            "mpich",
            *launcher("mpich", 2),
            compile_c("mpich", "recorded.c"),
            "killed",
        ],
        env=dict(os.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        lines = [job.stdout.readline() for _ in range(2)]
        assert all("goes on" in line for line in lines), lines
        time.sleep(0.5)
        job.send_signal(signal.SIGTERM)
        _, errors = job.communicate(timeout=60)
    finally:
        job.kill()
        job.wait()
    assert job.returncode != 0
    (world,) = json.loads(page.with_suffix(".json").read_text())["worlds"]
    assert total([row for row in world["rows"] if row["site"].startswith("sums")], "calls") > 20, errors
    check_page(page, "was killed")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--report", "page.pdf", "true"], "ends in .html"),
        (["run", "--report", "/nowhere/page.html", "true"], "cannot write"),
        (["run", "--report", "docs/", "true"], "ends in .html"),
        (["run", "--report", "page.html", "--trace", "./page.json", "true"], "to this file"),
        (["run", "--report", "page.html", "--trace", "page.html", "true"], "to this file"),
        (["run", "--trace", "docs", "true"], "cannot write docs: Is a directory"),
        (["report", "."], "cannot read"),
        (["bench", "--json", "/nowhere/rows.json"], "cannot write /nowhere/rows.json: there is no directory"),
        (["model", "--svg", "docs"], "cannot write docs: Is a directory"),
        (["tune", "--out", "docs"], "cannot write docs: Is a directory"),
        (["demo", "--out", "/nowhere/page.html"], "cannot write /nowhere/page.html"),
        (["run", "--report", "page.html", "/nonexistent/launcher"], "cannot start"),
        (["run", "--report"], "--report: expected one argument"),
        (["report", "/nonexistent.json"], "cannot read"),
        (["report", "README.md"], "is not JSON"),
        (["report", "CMakePresets.json"], "was not written by"),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], said: str) -> None:
    done = nearfield(*arguments)
    assert done.returncode == 2 and said in done.stderr
    assert done.stderr.count("\n") == 1 and not Path("page.html").exists()


def test_a_description_that_lacks_something_is_damaged(tmp_path: Path) -> None:
    for text in (
        '{"format": 1, "worlds": [{}]}',
        '{"format": 1, "worlds": 7}',
        '{"format": 1, "worlds": ["a"]}',
    ):
        (tmp_path / "run.json").write_text(text)
        done = nearfield("report", str(tmp_path / "run.json"))
        assert done.returncode == 2 and "is damaged" in done.stderr, done.stderr
        assert not (tmp_path / "run.html").exists()
