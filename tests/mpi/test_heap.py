"""The shared heap under MPI programs: which algorithms it opens, forks, and that it can be switched off."""

import pytest

from tests.mpi.jobs import EVERYTHING, NOTHING, UNKNOWN, Completed, hosts, launch, python_of
from tests.mpi.operations import DIRECT
from tests.mpi.scenario_jobs import good_scenarios, run_scenarios
from tests.selection import per_change

BOTH = hosts("mpich", "openmpi")
ALL = hosts()


@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("host", ALL)
def test_forks_between_collectives(host: str, ranks: int) -> None:
    env = {"NEARFIELD_ALGORITHM": "allreduce:direct;bcast:direct"}
    (done,) = good_scenarios(host, ranks, "forks", env=env)
    used = set(done.lines[0].split()[1:])
    assert used & DIRECT, "no buffer was ever reached"
    assert used - DIRECT, "a fork takes buffers out of reach"


@pytest.mark.parametrize("protocol", ["auto", "mapped"])
@pytest.mark.parametrize("host", BOTH)
def test_forks_during_many_messages(host: str, protocol: str) -> None:
    good_scenarios(host, 2, "forks_in_flight", env={"NEARFIELD_PROTOCOL": protocol})


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
        served=EVERYTHING,
    )
    assert job.returncode == 0, job.text[-3000:]
    assert job.stdout.count("200000.0") == 2
    assert ("direct" in job.stdout) == (heap == "shared"), job.stdout


@pytest.mark.parametrize(
    "env, served",
    [
        ({}, 1),
        ({"NEARFIELD": "off"}, 0),
        ({"NEARFIELD": "off", "NEARFIELD_HEAP": "shared"}, 1),
        ({"NEARFIELD_HEAP": "off"}, 0),
    ],
)
def test_what_switches_the_heap_off(env: dict[str, str], served: int) -> None:
    program = "import ctypes; b = bytearray(1 << 20); print('serves', int(bool(ctypes.CDLL(None).nearfield_heap_serves())))"
    job = launch("mpich", 1, [python_of("mpich"), "-c", program], env=env, served=NOTHING)
    assert f"serves {served}" in job.stdout, job.text


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
    job = launch("mpich", 2, [python_of("mpich"), "-c", program], timeout=100, served=EVERYTHING)
    assert job.stdout.count("good") == 2, job.text[-3000:]


def limited(host: str, limits: str, what: str) -> Completed:
    """A scenario under limits of the shell, such as -v 8388608."""
    limit = ("/bin/bash", "-c", f'ulimit {limits}; exec "$0" "$@"')
    return good_scenarios(host, 2, f"limits_{what}", env={"NEARFIELD_LOG": "info"}, before=limit)[0].job


@pytest.mark.parametrize("host", BOTH)
def test_limited_address_space_is_the_programs(host: str) -> None:
    job = limited(host, f"-v {8 << 20}", "malloc")
    assert "address space is limited" in job.text, job.text[-3000:]


@pytest.mark.parametrize("kib", [1 << 20, 100 << 10])
@pytest.mark.parametrize("host", BOTH)
def test_limited_file_sizes(host: str, kib: int) -> None:
    job = limited(host, f"-f {kib}", "communicate")
    assert "stays out" not in job.text, job.text[-3000:]


@pytest.mark.parametrize("host", BOTH)
def test_mlockall_leaves_what_is_sparse_alone(host: str) -> None:
    # The limit keeps the machine alive where it does not: each sparse mapping is as long as that.
    limited(host, f"-f {3 << 19}", "mlockall")


@pytest.mark.parametrize("host", BOTH)
def test_collectives_begin_where_memory_has_ended(host: str) -> None:
    good_scenarios(host, 2, "limits_data")


LATE = [
    *(
        "as 68719476736",
        "data 17179869184",
        "fsize 1048576",
        "fsize 65536",
        "nofile 64",
        "memlock 0",
        "stack 262144",
    ),
]


@pytest.mark.parametrize("who", [-1, 1])
@pytest.mark.parametrize("limit", LATE)
def test_limits_that_arrive_after_the_start(limit: str, who: int) -> None:
    good_scenarios("mpich", 2, f"limits_arrive {limit} {who} seen", timeout=30)


# Nothing can be mapped any more, nor opened. A host may give up then, as it does without us.
@pytest.mark.parametrize("who", [-1, 1])
@pytest.mark.parametrize("limit", ["as 1073741824", "nofile 3", "data 1048576"])
@pytest.mark.parametrize("host", per_change(BOTH))
def test_limits_that_leave_nothing_hang_nobody(host: str, limit: str, who: int) -> None:
    found = run_scenarios(host, 2, f"limits_arrive {limit} {who} unseen", timeout=30, served=UNKNOWN)
    assert not found[0].job.timed_out, found[0].job.text[-3000:]
    assert "hang report" not in found[0].job.text


@pytest.mark.parametrize("host", BOTH)
def test_a_limit_before_mpi_is_loaded_leaves_what_it_allows(host: str) -> None:
    program = (
        "import resource, numpy as np; before = np.ones(1 << 20)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (4 << 30, resource.RLIM_INFINITY))\n"
        "from mpi4py import MPI\n"
        "a = np.ones(1 << 17); b = np.empty(1 << 17)\n"
        "for i in range(3): MPI.COMM_WORLD.Allreduce(a, b)\n"
        "print(b.sum() + before[-1], flush=True)"
    )
    job = launch(host, 2, [python_of(host), "-c", program])
    assert job.stdout.count("262145.0") == 2, job.text[-3000:]
