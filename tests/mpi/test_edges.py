"""Collectives whose blocks differ, of neighbours, and non-blocking ones, against a model and the hosts' own results."""

from pathlib import Path

import pytest

from nearfield.hosts import HOSTS
from tests.mpi.jobs import Completed, carried, hosts, launch, python_of

WORKER = str(Path(__file__).with_name("worker_edges.py"))
# By ranks: how many cases of each kind.
CASES = {
    1: "vectors=60 topologies=60 mixes=6 lifetimes=6 threads=2",
    2: "vectors=80 topologies=80 mixes=6 lifetimes=6 threads=2",
    3: "vectors=40 topologies=40 mixes=4 lifetimes=4 threads=1",
    5: "vectors=20 topologies=20 mixes=2 lifetimes=2 threads=1",
    8: "vectors=8 topologies=8 mixes=1 lifetimes=1 threads=1",
}
V_FORMS = ["allgatherv", "gatherv", "scatterv", "alltoallv", "alltoallw"]
OF_NEIGHBOURS = [
    f"neighbor_{name}" for name in ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw")
]


def edges(host: str, ranks: int, cases: str, nearfield: bool = True, heap: str = "shared") -> Completed:
    """Runs cases."""
    env = {"NEARFIELD_HEAP": heap, "NEARFIELD_STALL_SECONDS": "20", "NEARFIELD_STATS": "1"}
    if host == "impi":  # by the Python of MPICH
        env["MPI4PY_LIBMPI"] = str(HOSTS[host].library)
    program = [python_of(host), WORKER, str(ranks), *cases.split()]
    # Half of all calls are the host's: non-blocking ones of Intel MPI with blocks of 32 KiB take seconds each where ranks
    # share CPUs with each other and with other work.
    return launch(host, ranks, program, env=env, timeout=300, nearfield=nearfield)


def assert_carried(job: Completed, ranks: int) -> None:
    """Nearfield served its communicators; half of all calls were made by the host, on duplicates."""
    for names in (V_FORMS, OF_NEIGHBOURS):
        served = {name: carried(job, name) for name in names}
        # Few cases do not have every operation, and some have no Alltoallw of one rank.
        missing = [name for name in names if not served[name] and (ranks, name) != (1, "alltoallw")]
        assert not missing if ranks <= 3 else any(served.values()), f"{missing}: {job.text[-3000:]}"


@pytest.mark.parametrize("heap", ["shared", "off"])
@pytest.mark.parametrize("ranks", CASES)
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_they_equal_the_model_and_the_hosts(host: str, ranks: int, heap: str) -> None:
    job = edges(host, ranks, CASES[ranks], heap=heap)
    assert not job.timed_out and job.returncode == 0, job.text[-3000:]
    for kind in CASES[ranks].split():
        assert f"{kind.replace('=', ': ')} cases" in job.stdout
    assert_carried(job, ranks)


@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_wrong_arguments_give_the_hosts_errors(host: str, ranks: int = 3) -> None:
    plain, ours = (edges(host, ranks, "errors=1", nearfield) for nearfield in (False, True))
    assert plain.returncode == 0 and "errors: 1 cases" in plain.stdout, plain.text[-3000:]
    expected, got = plain.stdout.splitlines(), ours.stdout.splitlines()
    assert len(expected) == len(got), ours.text[-3000:]
    for host_said, said in zip(expected, got, strict=True):
        # MPICH and Intel MPI lose truncations of Iscatterv.
        assert said == host_said or host_said.endswith(f": {[0] * ranks}"), ours.text[-3000:]
