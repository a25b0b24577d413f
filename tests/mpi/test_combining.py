"""Reductions that only the host can combine (operators of programs, odd pairs of type and operator) against its own results."""

import re

import pytest

from tests.mpi.jobs import carried, compile_c, hosts, launch

STATS = {"NEARFIELD_STATS": "1"}
OPERATIONS = ("reduce", "allreduce", "reduce_scatter_block", "scan", "exscan", "reduce_scatter")


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_they_equal_the_hosts(host: str, ranks: int) -> None:
    program = [compile_c(host, "combining.c", "-ldl"), "100000" if ranks < 4 else "1000"]
    job = launch(host, ranks, program, env=STATS, timeout=120)
    found = re.findall(r"(\d+) compared, 0 wrong", job.stdout)
    assert job.returncode == 0 and len(found) == ranks and all(int(n) > 400 for n in found), job.text[-4000:]
    assert all(carried(job, operation) > 70 for operation in OPERATIONS), job.text[-4000:]
    assert "user-defined operator" not in job.stderr, job.text[-4000:]
