"""Random collectives against the host's own results, at 1 to 9 ranks."""

import re
from pathlib import Path

import pytest

from tests.mpi.jobs import carried, hosts, launch, python_of
from tests.mpi.operations import ALGORITHMS, OPERATIONS

WORKER = str(Path(__file__).with_name("worker_properties.py"))
FORCED = str(Path(__file__).with_name("worker_forced.py"))
# Plain hosts take tens of milliseconds a call when ranks outnumber CPUs.
CASES = {1: 100, 2: 600, 3: 200, 4: 120, 5: 80, 7: 50, 8: 40, 9: 40}


@pytest.mark.parametrize("ranks", CASES)
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_random_collectives_equal_the_hosts(host: str, ranks: int) -> None:
    job = launch(
        host,
        ranks,
        [python_of(host), WORKER, str(ranks + 20), str(CASES[ranks])],
        env={"NEARFIELD_STATS": "1", "NEARFIELD_STALL_SECONDS": "20"},
        timeout=240,
    )
    assert not job.timed_out, job.text[-3000:]
    assert job.returncode == 0, job.text[-3000:]
    assert f"{CASES[ranks]} cases" in job.stdout
    assert sum(carried(job, name) for name in OPERATIONS) > CASES[ranks] / 4


# Rows of machines with several last-level caches or packages.
OF_CACHES = re.compile("near-first|distant|grouped")


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_every_row_that_is_forced_runs(host: str) -> None:
    ran = set()
    for ranks in (2, 4, 9):
        job = launch(
            host, ranks, [python_of(host), FORCED], env={"NEARFIELD_STALL_SECONDS": "20"}, timeout=120
        )
        assert not job.timed_out and job.returncode == 0, job.text[-3000:]
        ran |= set(re.findall(r"^(\S+) ran [1-9]", job.stdout, re.MULTILINE))
    every = {f"{op}:{row}" for op, rows in ALGORITHMS.items() for row in rows}
    assert not {row for row in every - ran if not OF_CACHES.search(row)}
