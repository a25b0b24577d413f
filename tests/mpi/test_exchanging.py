"""Alltoallv and Alltoallw against the hosts' own results, at 1 to 8 ranks."""

from pathlib import Path

import pytest

from tests.mpi.jobs import carried, hosts, launch, python_of

WORKER = str(Path(__file__).with_name("worker_exchanging.py"))
CASES = {1: 50, 2: 300, 3: 120, 5: 60, 8: 30}


@pytest.mark.parametrize("heap", ["shared", "off"])
@pytest.mark.parametrize("ranks", CASES)
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_they_equal_the_hosts(host: str, ranks: int, heap: str) -> None:
    env = {"NEARFIELD_HEAP": heap, "NEARFIELD_STALL_SECONDS": "20", "NEARFIELD_STATS": "1"}
    job = launch(
        host, ranks, [python_of(host), WORKER, str(ranks + 7), str(CASES[ranks])], env=env, timeout=120
    )
    assert not job.timed_out and job.returncode == 0, job.text[-3000:]
    assert f"{CASES[ranks]} cases" in job.stdout
    # Each call was made twice, once by the host.
    assert ranks == 1 or (carried(job, "alltoallv") > 0 and carried(job, "alltoallw") > 0), job.text[-3000:]
    assert carried(job, "alltoallv") + carried(job, "alltoallw") == CASES[ranks]
