"""Buffers in the memory of accelerators, by a run-time that stands in for CUDA's driver."""

import subprocess
from pathlib import Path

import pytest

from tests.mpi.jobs import PROGRAMS, SCRATCH, carried, compile_c, hosts, launch


@pytest.fixture(scope="module")
def fake_cuda() -> Path:
    """Compiles the run-time."""
    library = SCRATCH / "libcuda.so.1"
    SCRATCH.mkdir(exist_ok=True)
    source = PROGRAMS / "fake_cuda.c"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", str(source), "-o", str(library)], check=True)
    return library


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
@pytest.mark.parametrize("ranks", [2, 4])
def test_device_memory_and_ordinary_memory_meet(host: str, ranks: int, fake_cuda: Path) -> None:
    program = [compile_c(host, "devices.c", "-ldl"), str(fake_cuda)]
    job = launch(host, ranks, program, env={"NEARFIELD_STATS": "1"}, timeout=60)
    assert not job.timed_out and "good" in job.stdout, job.text
    for operation in ("bcast", "allgather", "alltoall", "allreduce", "reduce"):
        assert carried(job, operation) >= 4, job.text
