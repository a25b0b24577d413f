"""Fortran programs, by all three interfaces: their bindings reach Nearfield through PMPI_ entries."""

import subprocess

import pytest

from tests.mpi.jobs import (
    HEAP,
    HOSTS,
    LIBRARY,
    PROGRAMS,
    SCRATCH,
    Completed,
    carried,
    compile_c,
    hosts,
    launch,
    sent,
)
from tests.selection import per_change

INTERFACES = {
    "mpif.h": ("", "include 'mpif.h'"),
    "mpi": ("use mpi", ""),
    "mpi_f08": ("use mpi_f08\n  use iso_c_binding, only: c_ptr", ""),
}
TYPES = {
    "mpi_f08": {
        "STATUS_TYPE": "type(MPI_Status)",
        "STATUS_SIZE": "",
        "REQUEST_TYPE": "type(MPI_Request)",
        "WINDOW_TYPE": "type(MPI_Win)",
        "BASE_TYPE": "type(c_ptr)",
    },
    "other": {
        "STATUS_TYPE": "integer",
        "STATUS_SIZE": "(MPI_STATUS_SIZE)",
        "REQUEST_TYPE": "integer",
        "WINDOW_TYPE": "integer",
        "BASE_TYPE": "integer(kind=MPI_ADDRESS_KIND)",
    },
}
# Each host and each way into it per change, not each with each: f08 has bindings of its own, mpi those of mpif.h.
CELLS = pytest.mark.parametrize(
    ("interface", "host"),
    per_change(
        [
            pytest.param(interface, *host.values, marks=host.marks)
            for interfaces in (("mpi_f08", "mpif.h"), ("mpif.h", "mpi_f08"), ("mpi", "mpi"))
            for interface, host in zip(interfaces, hosts("debian-mpich", "debian-openmpi"), strict=True)
        ],
        2,
    ),
)


def run_fortran(host: str, interface: str, body: str, tool: str = "") -> Completed:
    """Compiles programs/BODY.inc for an interface and runs it on 3 ranks, with a preloaded tool behind Nearfield.

    The tool says the same as without Nearfield.
    """
    use, include = INTERFACES[interface]
    SCRATCH.mkdir(exist_ok=True)
    source = SCRATCH / f"{body}-{host}-{interface}.f90"
    text = (PROGRAMS / f"{body}.inc").read_text()
    for name, words in TYPES.get(interface, TYPES["other"]).items():
        text = text.replace(name, words)
    source.write_text(f"program {body}\n  {use}\n  implicit none\n  {include}\n{text}end program\n")
    program = source.with_suffix("")
    compiler = HOSTS[host].mpiexec.name.replace("mpiexec", "mpifort")
    flags = ["-fallow-argument-mismatch", "-w"]
    subprocess.run([compiler, *flags, str(source), "-o", str(program)], check=True, capture_output=True)
    env = {"LD_PRELOAD": f"{LIBRARY} {HEAP} {tool}"}
    job = launch(host, 3, [str(program)], env=env, statistics=True)
    assert "good" in job.stdout, job.text
    if tool:
        plain = launch(host, 3, [str(program)], env={"LD_PRELOAD": tool}, nearfield=False)
        said = [
            [line for line in of.stderr.splitlines() if line.startswith("profiled")] for of in (plain, job)
        ]
        assert said[0] == said[1], plain.stderr + job.stderr
    return job


@CELLS
def test_collectives_of_fortran_programs_are_carried(host: str, interface: str) -> None:
    job = run_fortran(host, interface, "collectives")
    for operation in ("barrier", "bcast", "reduce", "gather", "scatter", "allgather", "alltoall"):
        assert carried(job, operation) >= 1, job.stderr
    assert carried(job, "allreduce") == 5, job.stderr


@CELLS
def test_messages_of_fortran_programs_are_carried(host: str, interface: str) -> None:
    job = run_fortran(host, interface, "messages")
    assert sent(job) == 18, job.statistics
    assert job.statistics[0].counts["messages_to_the_host"] == 0, job.statistics


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("host", hosts("debian-mpich", "debian-openmpi"))
def test_windows_tell_how_they_were_made(host: str, interface: str) -> None:
    # Through bindings that reach past MPI_Win_get_attr into the library.
    run_fortran(host, interface, "windows")


@CELLS
def test_profiling_tools_see_what_they_see_without_nearfield(host: str, interface: str) -> None:
    tool = compile_c(host, "profiler.c", "-shared", "-fPIC")
    job = run_fortran(host, interface, "collectives", tool)
    assert carried(job, "allreduce") == 5, job.stderr
