"""Every collective in every form: blocking, non-blocking and persistent, many at a time."""

from pathlib import Path

import pytest

from nearfield.hosts import HOSTS
from tests.mpi.jobs import EVERYTHING, carried, hosts, launch, python_of
from tests.mpi.scenario_jobs import good_scenarios

WORKER = str(Path(__file__).with_name("worker_forms.py"))
ROUNDS = {1: 15, 2: 40, 3: 25, 5: 12, 8: 4}


@pytest.mark.parametrize("ranks", ROUNDS)
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_all_forms_equal_the_model(host: str, ranks: int) -> None:
    env = {"NEARFIELD_STALL_SECONDS": "20", "NEARFIELD_STATS": "1"}
    if host == "impi":  # by the Python of MPICH
        env["MPI4PY_LIBMPI"] = str(HOSTS[host].library)
    program = [python_of(host), WORKER, str(ranks), str(ROUNDS[ranks])]
    job = launch(host, ranks, program, env=env, timeout=120)
    assert not job.timed_out and job.returncode == 0, job.text[-3000:]
    assert job.stdout.count("rounds are good") == ranks


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_what_is_freed_lives_as_long_as_its_requests(host: str, ranks: int) -> None:
    # Memory that has been freed holds nothing that could pass for what was there.
    env = {"NEARFIELD_STATS": "1", "MALLOC_PERTURB_": "165"}
    freed, _ = good_scenarios(host, ranks, "freed", "freed_planned", env=env)
    assert carried(freed.job, "allreduce") >= 100


@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_a_team_is_founded_while_nobody_waits(host: str, ranks: int) -> None:
    (done,) = good_scenarios(host, ranks, "founded 30", env={"NEARFIELD_STATS": "1"})
    for operation in ("allreduce", "bcast", "barrier", "gather", "reduce_scatter"):
        assert carried(done.job, operation) > 0


@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_what_is_wrong_is_told_before_there_is_a_team(host: str) -> None:
    good_scenarios(host, 3, "founded 1", "founded_errors", served=EVERYTHING.but("bcast: argument"))


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_all_forms_of_nothing(host: str, ranks: int) -> None:
    good_scenarios(host, ranks, "nothing")
