"""Callbacks of the program that never return: they throw through MPI, or leave it by longjmp, and MPI goes on."""

import pytest

from nearfield.hosts import HOSTS
from tests.mpi.jobs import AT_ONCE, EVERYTHING, PROGRAMS, compiled, hosts, launch

CALLBACKS = (
    "wrong-rank",
    "called",
    "truncated",
    "blocking",
    "window",
    "file",
    "copy",
    "delete",
    "free",
    "type",
    "window-attribute",
    "operator",
    "request",
)

# Errors that the host has to raise go by it.
CARRIED = EVERYTHING.but("bcast: argument", "messages: all")


def program(host: str) -> str:
    """The program for the host's ABI, by the compiler of C++."""
    options = ("-std=c++20", "-O1", "-g1", f"-I{HOSTS[host].include}", str(PROGRAMS / "throws.cpp"))
    return compiled(f"throws-{host}", (*options, str(HOSTS[host].library)), "g++")


@pytest.mark.parametrize("how", ["throw", "memory", "longjmp"])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_callbacks_may_throw_and_jump(host: str, how: str) -> None:
    job = launch(host, 2, [program(host), how, *CALLBACKS], env=AT_ONCE, served=CARRIED)
    assert job.returncode == 0 and "good" in job.stdout, job.text
