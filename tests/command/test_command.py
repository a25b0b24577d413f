"""The nearfield command: `run`, `info`, and that pages say what it knows."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nearfield import __version__
from nearfield.operations import OPERATIONS
from tests.command.calling import COMMAND, nearfield
from tests.mpi.jobs import HOSTS, ROOT, hosts, python_of


def test_it_is_installed() -> None:
    done = subprocess.run([COMMAND, "version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == __version__


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_run_reaches_the_ranks(host: str) -> None:
    script = "import sys; from mpi4py import MPI; MPI.COMM_WORLD.Barrier(); sys.stdout.write(f'sum {MPI.COMM_WORLD.allreduce(1)}\\n')"
    options = HOSTS[host].options
    done = nearfield(
        "run", "--stats", "--host", host, "mpiexec", *options, "-n", "2", python_of(host), "-c", script
    )
    assert done.stdout.count("sum 2") == 2, done.stderr
    assert "barrier" in done.stderr


def test_run_starts_no_python_where_it_needs_none() -> None:
    for options in (["--log", "off"], ["--log=off", "--stats", "--heap", "off", "--"]):
        done = nearfield("run", *options, "echo", "good", PYTHONPROFILEIMPORTTIME="1")
        assert (done.returncode, done.stdout, done.stderr) == (0, "good\n", ""), done.text


def test_what_run_needs_python_for_loads_nothing_else() -> None:
    done = nearfield("run", "--log", "off", "--host", "mpich", "true", PYTHONPROFILEIMPORTTIME="1")
    loaded = set(re.findall(r"\| +([\w.]+)$", done.stderr, re.MULTILINE))
    assert done.returncode == 0 and "nearfield.run" in loaded
    assert not loaded & {"typer", "click", "rich", "numpy", "matplotlib", "elftools", "nearfield.commands"}


def test_run_says_what_is_missing() -> None:
    done = nearfield("run", "true", NEARFIELD_LIBDIR="/nowhere")
    assert done.returncode == 2 and "make build" in done.stderr
    assert nearfield("run").returncode == 2
    assert nearfield("run", "--host", "nobody", "true").returncode == 2
    assert nearfield("run", "/nonexistent/launcher").returncode == 2


def test_info_is_valid_json_and_tells_why() -> None:
    found = json.loads(nearfield("info", "--json").stdout)
    ways = {way["name"]: way for way in found["reach"]}
    assert ways["mapped"]["works"] and ways["xpmem"]["why"]
    assert {"slots", "partitioned"} <= {row["name"] for row in found["algorithms"]["allreduce"]}
    assert "NEARFIELD_ALGORITHM" in nearfield("info").stdout


def test_the_documentation_has_the_settings_as_they_are() -> None:
    table = nearfield("info", "--settings").stdout.strip()
    assert table.count("\n") > 15
    assert table in (ROOT / "docs/settings.md").read_text()


def test_the_command_knows_every_operation() -> None:
    assert set(OPERATIONS.split(",")) == set(json.loads(nearfield("info", "--json").stdout)["algorithms"])


def test_run_knows_its_heaps() -> None:
    assert "either shared or off" in nearfield("run", "--heap", "huge", "true").stderr
    shown = nearfield("run", "--heap", "off", "sh", "-c", "echo $LD_PRELOAD")
    assert "libnearfield.so" in shown.stdout and "heap" not in shown.stdout
    assert "libnearfield-heap.so" in nearfield("run", "sh", "-c", "echo $LD_PRELOAD").stdout


def test_the_page_of_calls_is_what_the_tables_say(tmp_path: Path) -> None:
    def check(root: Path) -> subprocess.CompletedProcess:
        words = [sys.executable, str(root / "scripts/calls.py"), "--check"]
        return subprocess.run(words, capture_output=True, text=True)

    assert check(ROOT).returncode == 0, check(ROOT).stderr
    tables = (
        "mpi/functions.def",
        "mpi/blocking.def",
        "mpi/shim/stats.cpp",
        "docs/calls.md",
        "scripts/calls.py",
    )
    for table in tables:
        (tmp_path / table).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / table, tmp_path / table)
    assert check(tmp_path).returncode == 0
    # What is new must be described, and the page be written again.
    for table, old, new, complaint in (
        ("mpi/functions.def", "F(Probe, ", "F(Probing, (int))\nF(Probe, ", "MPI_Probing"),
        ("mpi/blocking.def", "F(File_open)", "F(File_open)\nF(Novel)", "MPI_Novel"),
        ("mpi/shim/stats.cpp", '"switched off"', '"switched off", "a novelty"', "a novelty"),
        ("docs/calls.md", "`Bcast`", "`Bcasts`", "run scripts/calls.py"),
    ):
        text = (tmp_path / table).read_text()
        assert old in text
        (tmp_path / table).write_text(text.replace(old, new, 1))
        done = check(tmp_path)
        assert done.returncode == 1 and complaint in done.stderr, done.stderr
        (tmp_path / table).write_text(text)
