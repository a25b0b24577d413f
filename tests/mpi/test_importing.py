"""`import nearfield` in front of mpi4py: served where nobody has preloaded anything."""

import os
from pathlib import Path

import pytest

from nearfield.statistics import PATTERN, VARIABLE, read_statistics
from tests.mpi.jobs import ROOT, Completed, command, environment, hosts, python_of, run

WORKS = """
from array import array
from mpi4py import MPI
world, total = MPI.COMM_WORLD, array("d", [0])
world.Allreduce(array("d", [world.rank]), total)
assert total[0] == sum(range(world.size))
left, right = (world.rank - 1) % world.size, (world.rank + 1) % world.size
assert world.sendrecv(bytes(100_000), right, source=left) == bytes(100_000)
assert world.sendrecv(world.rank, right, source=left) == left
window = MPI.Win.Allocate(8, comm=world)
window.Fence()
window.Put(bytes([world.rank] * 8), right)
window.Fence()
assert bytes(window.tomemory()) == bytes([left] * 8)
window.Free()
from ctypes import CDLL
print("good heap" if hasattr(CDLL(None), "nearfield_heap_serves") else "good no heap")
"""


def job(host: str, text: str, tmp_path: Path, **env: str) -> Completed:
    """Two ranks of Python, with nothing preloaded, that find this checkout's package."""
    env |= {"PYTHONPATH": str(ROOT), VARIABLE: f"{tmp_path}/{PATTERN}"}
    words = command(host, 2, [python_of(host), "-c", text])
    return run(words, environment(host, False, env), 60)


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_what_is_imported_first_serves(host: str, tmp_path: Path) -> None:
    done = job(host, "import nearfield" + WORKS, tmp_path)
    assert (
        done.returncode == 0
        and done.stdout.count("good no heap") == 2
        and "nearfield" not in done.stderr.lower()
    ), done.text
    ranks = read_statistics(tmp_path)
    assert len(ranks) == 2
    for rank in ranks:
        assert rank.operations["allreduce"].carried and rank.sent and rank.counts["windows"]


@pytest.mark.parametrize(
    "text, setting, says",
    [("import mpi4py.MPI\nimport nearfield", "", "import nearfield first"), ("import nearfield", "off", "")],
    ids=["late", "off"],
)
def test_the_host_serves_where_it_comes_late_or_is_off(
    text: str, setting: str, says: str, tmp_path: Path
) -> None:
    done = job("mpich", text + WORKS, tmp_path, NEARFIELD=setting)
    assert done.returncode == 0 and done.stdout.count("good") == 2, done.text
    assert says in done.stderr if says else "nearfield" not in done.stderr.lower(), done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_what_has_been_preloaded_stays(host: str, tmp_path: Path) -> None:
    preloads = environment(host, True)["LD_PRELOAD"]
    done = job(host, "import nearfield" + WORKS, tmp_path, LD_PRELOAD=preloads)
    assert (
        done.returncode == 0
        and done.stdout.count("good heap") == 2
        and "nearfield" not in done.stderr.lower()
    ), done.text


def test_what_is_not_built_is_no_error(tmp_path: Path) -> None:
    done = job("mpich", "import nearfield" + WORKS, tmp_path, NEARFIELD_LIBDIR=os.fspath(tmp_path))
    assert done.returncode == 0 and "libnearfield.so is not in" in done.stderr, done.text
