"""Random collectives against the host's own results, at 1 to 9 ranks."""

from pathlib import Path

import pytest

from tests.mpi.jobs import carried, hosts, launch, python_of
from tests.mpi.operations import OPERATIONS

WORKER = str(Path(__file__).with_name("worker_properties.py"))
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
    if ranks > 1:
        assert sum(carried(job, name) for name in OPERATIONS) > CASES[ranks] / 4
