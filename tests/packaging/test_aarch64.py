"""The wheel for aarch64: cross-built, and started under emulation with a job of two emulated ranks.

The launcher is this machine's; its ranks are an emulated program with the wheel's libraries and an MPICH of that processor.
"""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from nearfield import __version__
from nearfield.statistics import PATTERN, read_statistics
from tests.mpi.jobs import HOSTS, PROGRAMS, ROOT
from tests.packaging.conftest import clean_environment, run
from tests.scripts.loading import load

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not shutil.which("qemu-aarch64-static"), reason="qemu-user-static is not installed"),
]
SYSTEM = "/usr/aarch64-linux-gnu"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


@pytest.fixture(scope="module")
def crossed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel."""
    out = tmp_path_factory.mktemp("crossed")
    words = [sys.executable, "scripts/wheel.py", "--aarch64", "--out", str(out)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = out.iterdir()
    return built


@pytest.fixture(scope="module")
def package(crossed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the wheel installs; its programs can be started, as pip has it."""
    place = tmp_path_factory.mktemp("package")
    with zipfile.ZipFile(crossed) as archive:
        archive.extractall(place)
    for program in [*place.glob("nearfield/bin/*"), *place.glob("*.data/scripts/*")]:
        program.chmod(0o755)
    return place / "nearfield"


def test_it_runs_where_its_name_says(crossed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert crossed.name == f"nearfield-{__version__}-py3-none-manylinux_2_28_aarch64.whl"
    script = load("scripts/wheel.py", monkeypatch)
    machines = [elf.get_machine_arch() for _, elf in script.objects_of(crossed)]
    assert machines == ["AArch64"] * 9
    assert script.complaints(crossed) == []


def test_its_programs_start(package: Path, tmp_path: Path) -> None:
    emulated = ["qemu-aarch64-static", "-L", SYSTEM]
    (command,) = package.parent.glob("*.data/scripts/nearfield")
    told = run(*emulated, command, "run", "env", cwd=tmp_path, NEARFIELD_LIBDIR=f"{package}/lib").stdout
    assert f"LD_PRELOAD={package}/lib/libnearfield.so" in told, told
    done = run(*emulated, package / "bin/nearfield-probe", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("{"), done.stdout + done.stderr


def test_an_emulated_job_is_served(package: Path, tmp_path: Path) -> None:
    words = ["download", "-q", "--no-deps", "--only-binary=:all:", "--platform", "manylinux_2_28_aarch64"]
    subprocess.run([*PIP, *words, "-d", str(tmp_path), "mpich"], check=True, env=clean_environment())
    with zipfile.ZipFile(next(tmp_path.glob("mpich-*.whl"))) as archive:
        archive.extractall(tmp_path)
    (mpi,) = tmp_path.glob("mpich-*.data/data")
    program = tmp_path / "contained"
    compiler = ["aarch64-linux-gnu-gcc", "-O1", f"-I{mpi}/include", str(PROGRAMS / "contained.c")]
    linked = [str(mpi / "lib/libmpi.so.12"), "-Wl,--allow-shlib-undefined", "-o", str(program)]
    subprocess.run([*compiler, *linked], check=True)
    guest = {
        "LD_LIBRARY_PATH": f"{mpi}/lib",
        "LD_PRELOAD": f"{package}/lib/libnearfield.so:{package}/lib/libnearfield-heap.so",
    }
    emulated = ["qemu-aarch64-static", "-L", SYSTEM]
    emulated += [word for name, value in guest.items() for word in ("-E", f"{name}={value}")]
    (tmp_path / "statistics").mkdir()
    env = {"NEARFIELD_STATS_FILE": f"{tmp_path}/statistics/{PATTERN}"}
    done = run(HOSTS["mpich"].mpiexec, "-n", 2, *emulated, program, 16384, cwd=tmp_path, **env)
    assert done.returncode == 0 and "good" in done.stdout, done.stdout + done.stderr
    ranks = read_statistics(tmp_path / "statistics")
    assert len(ranks) == 2 and all(rank.carried("allreduce") and rank.sent for rank in ranks)
