"""Collectives in all their forms: what lives as long as they do, and calls before there is a team, or of nothing."""

import re

import pytest

from tests.mpi.jobs import carried, compile_c, hosts, launch


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_what_is_freed_lives_as_long_as_its_requests(host: str, ranks: int) -> None:
    # Memory that has been freed holds nothing that could pass for what was there.
    env = {"NEARFIELD_STATS": "1", "MALLOC_PERTURB_": "165"}
    job = launch(host, ranks, [compile_c(host, "freed.c"), "planned"], env=env, timeout=60)
    assert job.returncode == 0 and job.stdout.count("good") == ranks, job.text[-3000:]
    assert carried(job, "allreduce") >= 100


@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_a_team_is_founded_while_nobody_waits(host: str, ranks: int) -> None:
    env = {"NEARFIELD_STATS": "1", "NEARFIELD_STALL_SECONDS": "20"}
    job = launch(host, ranks, [compile_c(host, "founded.c"), "30"], env=env, timeout=60)
    assert job.returncode == 0 and job.stdout.count("good") == ranks, job.text[-3000:]
    for operation in ("allreduce", "bcast", "barrier", "gather", "reduce_scatter"):
        assert carried(job, operation) > 0
        assert not re.search(rf"^ *{operation} +\d+ +\d+ +[\d.]+ +[1-9]", job.text, re.M), job.text[-3000:]


@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_what_is_wrong_is_told_before_there_is_a_team(host: str) -> None:
    job = launch(host, 3, [compile_c(host, "founded.c"), "1", "errors"], timeout=60)
    assert job.returncode == 0 and job.stdout.count("good") == 3, job.text[-3000:]


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_all_forms_of_nothing(host: str, ranks: int) -> None:
    job = launch(
        host, ranks, [compile_c(host, "nothing.c")], env={"NEARFIELD_STALL_SECONDS": "20"}, timeout=60
    )
    assert job.returncode == 0 and job.stdout.count("good") == ranks, job.text[-3000:]
