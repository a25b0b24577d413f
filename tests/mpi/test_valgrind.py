"""Under Valgrind, which walks through all memory that a program reserves."""

import shutil

import pytest

from tests.mpi.jobs import compile_c, hosts, launch


@pytest.mark.full
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_programs_end_under_valgrind_and_are_served(host: str) -> None:
    valgrind = shutil.which("valgrind")
    if not valgrind:
        pytest.skip("valgrind is not installed")
    program = [valgrind, "-q", "--error-exitcode=0", compile_c(host, "several.c"), "plain"]
    job = launch(host, 2, program, {"NEARFIELD_WAIT": "yield", "NEARFIELD_LOG": "info"}, timeout=200)
    assert job.returncode == 0 and "good" in job.stdout, job.text
    assert "; heap: the program's own; " in job.stderr, job.text
