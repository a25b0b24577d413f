"""The shared heap under MPI programs: which algorithms it opens, forks, and that it can be switched off."""

import pytest

from tests.mpi.jobs import compile_c, hosts, launch, python_of
from tests.mpi.operations import DIRECT

BOTH = hosts("mpich", "openmpi")
ALL = hosts("mpich", "openmpi", "impi", "debian-mpich", "debian-openmpi")


@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("host", ALL)
def test_forks_between_collectives(host: str, ranks: int) -> None:
    env = {"NEARFIELD_ALGORITHM": "allreduce:direct;bcast:direct"}
    job = launch(host, ranks, [compile_c(host, "forks.c")], env=env, timeout=100)
    assert job.returncode == 0 and "good" in job.stdout, job.text[-3000:]
    used = set(job.stdout.split("algorithms", 1)[1].splitlines()[0].split())
    assert used & DIRECT, "no buffer was ever reached"
    assert used - DIRECT, "a fork takes buffers out of reach"


@pytest.mark.parametrize("host", BOTH)
def test_forks_during_collectives(host: str) -> None:
    job = launch(host, 2, [compile_c(host, "forks.c", "-pthread"), "threads"], timeout=100)
    assert job.returncode == 0 and "good" in job.stdout, job.text[-3000:]


@pytest.mark.parametrize("heap", ["shared", "off"])
def test_it_decides_whether_ordinary_arrays_are_reached(heap: str) -> None:
    program = (
        "import ctypes, numpy as np; from mpi4py import MPI\n"
        "a = np.ones(100000); b = np.empty(100000)\n"
        "for i in range(3): MPI.COMM_WORLD.Allreduce(a, b)\n"
        "last = ctypes.CDLL(None).nearfield_last_algorithm; last.restype = ctypes.c_char_p\n"
        "print(f'{b.sum()} by {last().decode()}', flush=True)"
    )
    job = launch(
        "mpich",
        2,
        [python_of("mpich"), "-c", program],
        env={"NEARFIELD_HEAP": heap, "NEARFIELD_ALGORITHM": "allreduce:direct"},
    )
    assert job.returncode == 0, job.text[-3000:]
    assert job.stdout.count("200000.0") == 2
    assert ("direct" in job.stdout) == (heap == "shared"), job.stdout


def test_multiprocessing_in_ranks() -> None:
    program = (
        "import multiprocessing, numpy as np; from mpi4py import MPI\n"
        "a = np.arange(300000.0); b = np.empty_like(a)\n"
        "def work(k):\n"
        "    a[k] = -1\n"
        "    return a.sum()\n"
        "for i in range(3):\n"
        "    MPI.COMM_WORLD.Allreduce(a, b)\n"
        "    with multiprocessing.get_context('fork').Pool(2) as pool:\n"
        "        sums = pool.map(work, [1] * 4, chunksize=1)\n"
        "    assert set(sums) == {np.arange(300000.0).sum() - 2}, sums\n"
        "    assert (b == 2 * np.arange(300000.0)).all() and a[1] == 1\n"
        "print('good', flush=True)"
    )
    job = launch("mpich", 2, [python_of("mpich"), "-c", program], timeout=100)
    assert job.stdout.count("good") == 2, job.text[-3000:]
