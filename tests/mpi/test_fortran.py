"""Fortran programs, by all three interfaces: their bindings reach Nearfield through PMPI_ entries."""

import subprocess

import pytest

from tests.mpi.jobs import HOSTS, PROGRAMS, SCRATCH, carried, hosts, launch

INTERFACES = {"mpif.h": ("", "include 'mpif.h'"), "mpi": ("use mpi", ""), "mpi_f08": ("use mpi_f08", "")}


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("host", hosts("debian-mpich", "debian-openmpi"))
def test_fortran_programs_are_carried(host: str, interface: str) -> None:
    use, include = INTERFACES[interface]
    SCRATCH.mkdir(exist_ok=True)
    source = SCRATCH / f"program-{host}-{interface}.f90"
    body = (PROGRAMS / "collectives.inc").read_text()
    source.write_text(f"program collectives\n  {use}\n  implicit none\n  {include}\n{body}end program\n")
    program = source.with_suffix("")
    compiler = HOSTS[host].mpiexec.name.replace("mpiexec", "mpifort")
    flags = ["-fallow-argument-mismatch", "-w"]
    subprocess.run([compiler, *flags, str(source), "-o", str(program)], check=True, capture_output=True)
    job = launch(host, 3, [str(program)], env={"NEARFIELD_STATS": "1"})
    assert "good" in job.stdout, job.text
    for operation in ("barrier", "bcast", "reduce", "gather", "scatter", "allgather", "alltoall"):
        assert carried(job, operation) >= 1, job.stderr
    assert carried(job, "allreduce") == 5, job.stderr
