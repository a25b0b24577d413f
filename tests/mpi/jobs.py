"""Starting MPI jobs of several hosts under Nearfield, with a hard time limit."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from nearfield.hosts import HOSTS, host_environment, launch_command
from nearfield.hosts import python_of as interpreter

ROOT = Path(__file__).resolve().parents[2]
# The build that is tested: "release", another directory, or "asan", whose runtimes come first; they replace malloc, so the heap is out.
BUILD = os.environ.get("NEARFIELD_TEST_BUILD", "release")
SANITIZED = BUILD == "asan"
LIBRARY = ROOT / "build" / BUILD / "lib" / "libnearfield.so"
HEAP = LIBRARY.parent / "libnearfield-heap.so"
PROGRAMS = Path(__file__).parent / "programs"
SCRATCH = Path(tempfile.gettempdir()) / f"nearfield-tests-{os.getuid()}"
# What Open MPI's launcher says in one of some hundred jobs beside others, before it starts any rank.
NOT_LAUNCHED = "PMIx server's listener thread failed to start"
NEEDED_IN_CI = ("mpich", "openmpi")


@dataclass
class Completed:
    """How a job ended."""

    returncode: int
    stdout: str
    stderr: str
    timed_out: bool

    @property
    def text(self) -> str:
        """Everything that the job printed."""
        return self.stdout + self.stderr


def hosts(*names: str) -> list:
    """Parameters for pytest: the named hosts, or all; absent ones are skipped, or fail where CI needs them."""
    parameters = []
    for name in names or HOSTS:
        absent = not HOSTS[name].mpiexec.exists()
        if absent and os.environ.get("CI") == "true" and name in NEEDED_IN_CI:
            raise RuntimeError(f"{name} is not installed; run scripts/setup.sh")
        marks = [pytest.mark.skip(reason=f"{name} is not installed")] if absent else []
        parameters.append(pytest.param(name, marks=marks))
    return parameters


def python_of(host: str) -> str:
    """The interpreter whose mpi4py uses the host."""
    return interpreter(HOSTS[host])


def environment(host: str, nearfield: bool, extra: dict[str, str] | None = None) -> dict[str, str]:
    """The environment of a job."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("NEARFIELD")}
    env |= host_environment(HOSTS[host])
    if nearfield and SANITIZED:
        env["LD_PRELOAD"] = f"{runtime('libasan.so')}:{runtime('libubsan.so')}:{LIBRARY}"
        # What hosts and launchers do is theirs.
        env["ASAN_OPTIONS"] = "detect_leaks=0:abort_on_error=0:exitcode=99:verify_asan_link_order=0"
        env["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1"
    elif nearfield:
        env["LD_PRELOAD"] = f"{LIBRARY}:{HEAP}"  # NEARFIELD_HEAP=off in `extra` switches the heap off
    return env | (extra or {})


@functools.cache
def runtime(library: str) -> str:
    """Where the compiler keeps a sanitizer's runtime."""
    found = subprocess.run(["g++", f"-print-file-name={library}"], capture_output=True, text=True, check=True)
    return os.path.realpath(found.stdout.strip())


def command(host: str, ranks: int, program: list[str], options: tuple[str, ...] = ()) -> list[str]:
    """The command line of a job."""
    return launch_command(HOSTS[host], ranks, program, options)


def run(arguments: list[str], env: dict[str, str], timeout: float) -> Completed:
    """Runs a command in a session of its own; after `timeout` seconds all of it is killed."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(
            arguments, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        timed_out = False
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            kill_tree(process.pid)
            process.wait()
        out.seek(0)
        err.seek(0)
        return Completed(process.returncode, out.read(), err.read(), timed_out)


def launch(
    host: str,
    ranks: int,
    program: list[str],
    env: dict[str, str] | None = None,
    timeout: float = 60,
    nearfield: bool = True,
    options: tuple[str, ...] = (),
) -> Completed:
    """Runs `program` on `ranks` ranks of `host`."""
    arguments, env = command(host, ranks, program, options), environment(host, nearfield, env)
    for _ in range(3):
        job = run(arguments, env, timeout)
        if NOT_LAUNCHED not in job.stderr:
            break
    return job


def descendants(pid: int) -> list[int]:
    """All processes below `pid`, itself included."""
    found = [pid]
    for parent in found:
        try:
            tasks = Path(f"/proc/{parent}/task").iterdir()
            for task in tasks:
                found += [int(child) for child in (task / "children").read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def kill_tree(pid: int) -> None:
    """Kills a process and everything below it."""
    for victim in descendants(pid):
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            continue


def start_telling(
    host: str, ranks: int, program: list[str], options: tuple[str, ...] = (), stderr: int = subprocess.PIPE
) -> tuple[subprocess.Popen, dict[int, int]]:
    """Starts a program that prints "rank N process PID" on each rank; the job and the process of each rank."""
    job = subprocess.Popen(
        command(host, ranks, program, options),
        env=environment(host, True),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        start_new_session=True,
    )
    processes: dict[int, int] = {}
    while len(processes) < ranks:
        found = re.match(r"rank (\d+) process (\d+)", job.stdout.readline())
        assert found, "the job ended early"
        processes[int(found[1])] = int(found[2])
    time.sleep(0.5)
    return job, processes


def report_after_kill(ranks: int, program: list[str]) -> str:
    """What the survivors report when rank 1 of a job of MPICH is killed.

    `program` prints "rank N process PID" on each rank and takes a file for its standard error as its last argument.
    The launcher is stopped meanwhile: it would kill the survivors before they have noticed.
    """
    SCRATCH.mkdir(exist_ok=True)
    log = SCRATCH / f"report-{os.getpid()}"
    log.unlink(missing_ok=True)
    job, processes = start_telling("mpich", ranks, [*program, str(log)], stderr=subprocess.DEVNULL)
    below = descendants(job.pid)
    try:
        for pid in set(below) - set(processes.values()):
            os.kill(pid, signal.SIGSTOP)
        os.kill(processes[1], signal.SIGKILL)
        end = time.monotonic() + 10
        while time.monotonic() < end and "died" not in log.read_text():
            time.sleep(0.05)
        time.sleep(0.2)
        return log.read_text()
    finally:
        for pid in below:
            kill_tree(pid)
        job.wait()


@functools.cache
def compile_c(host: str, source: str, *options: str) -> str:
    """Compiles programs/SOURCE for the host's ABI; the path of the program."""
    SCRATCH.mkdir(exist_ok=True)
    text = (PROGRAMS / source).read_bytes()
    digest = hashlib.sha256(text + " ".join(options).encode()).hexdigest()[:12]
    program = SCRATCH / f"{Path(source).stem}-{host}-{digest}"
    if not program.exists():
        built = program.with_suffix(f".{os.getpid()}")
        include, library = HOSTS[host].include, HOSTS[host].library
        compiler = ["gcc", "-O1", "-g1", f"-I{include}", str(PROGRAMS / source), *options]
        subprocess.run([*compiler, str(library), "-lm", "-lpthread", "-o", str(built)], check=True)
        shutil.move(built, program)
    return str(program)


def carried(completed: Completed, operation: str) -> int:
    """Calls of `operation` that Nearfield carried itself, out of the table of NEARFIELD_STATS."""
    for line in completed.stderr.splitlines():
        words = line.split()
        if len(words) >= 5 and words[0] == operation and words[1].isdigit():
            return int(words[1]) - int(words[4])
    return 0
