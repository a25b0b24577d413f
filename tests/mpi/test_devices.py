"""Buffers in the memory of accelerators, by a run-time that stands in for CUDA's driver."""

import pytest

from tests.mpi.jobs import PROGRAMS, UNKNOWN, carried, compile_library, hosts
from tests.mpi.scenario_jobs import good_scenarios


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
@pytest.mark.parametrize("ranks", [2, 4])
def test_device_memory_and_ordinary_memory_meet(host: str, ranks: int) -> None:
    cuda = compile_library(PROGRAMS / "fake_cuda.c", "libcuda.so.1")
    (done,) = good_scenarios(host, ranks, f"devices {cuda}")
    for operation in ("bcast", "allgather", "alltoall", "allreduce", "reduce"):
        assert carried(done.job, operation) >= 4, done.job.text


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_a_copy_that_fails_is_raised_once(host: str) -> None:
    cuda = compile_library(PROGRAMS / "fake_cuda.c", "libcuda.so.1")
    good_scenarios(host, 3, f"devices_failing {cuda}", timeout=30, served=UNKNOWN)
