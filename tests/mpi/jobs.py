"""Starting MPI jobs of several hosts under Nearfield, with a hard time limit."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from nearfield.hosts import HOSTS, host_environment, launch_command
from nearfield.hosts import python_of as interpreter
from nearfield.statistics import PATTERN, VARIABLE, Statistics, missing, read_statistics

ROOT = Path(__file__).resolve().parents[2]
# The build that is tested: "release", another directory, or "asan", whose runtimes come first; they replace malloc, so the heap is out.
BUILD = os.environ.get("NEARFIELD_TEST_BUILD", "release")
SANITIZED = BUILD == "asan"
LIBRARY = ROOT / "build" / BUILD / "lib" / "libnearfield.so"
HEAP = LIBRARY.parent / "libnearfield-heap.so"
STANDARD = ROOT / ".venv/lib/libmpi_abi.so.1"  # MPICH by the standard ABI
PROGRAMS = Path(__file__).parent / "programs"
SCRATCH = Path(tempfile.gettempdir()) / f"nearfield-tests-{os.getuid()}"
# What Open MPI's launcher says in one of some hundred jobs beside others, before it starts any rank.
NOT_LAUNCHED = "PMIx server's listener thread failed to start"
NEEDED_IN_CI = ("mpich", "openmpi", "impi")


@dataclass
class Completed:
    """How a job ended."""

    returncode: int
    stdout: str
    stderr: str
    timed_out: bool
    statistics: list[Statistics] = field(default_factory=list)  # by rank, where launch() asked for them

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


def run(arguments: list[str], env: dict[str, str], timeout: float, cwd: Path | None = None) -> Completed:
    """Runs a command in a session of its own; after `timeout` seconds, or when we are interrupted, all of it is killed."""
    file = functools.partial(tempfile.TemporaryFile, "w+", errors="backslashreplace")
    with file() as out, file() as err:
        process = subprocess.Popen(
            arguments,
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        timed_out = False
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            if process.poll() is None:
                kill_tree(process.pid)
                process.wait()
        out.seek(0)
        err.seek(0)
        return Completed(process.returncode, out.read(), err.read(), timed_out)


@dataclass(frozen=True)
class Served:
    """What Nearfield has to have served of a job, told by the statistics of the first rank and by those of all ranks together.

    `to_the_host` names rows of which calls may have gone to the host: an operation ("bcast"), "messages" or "windows", of
    which some have to have been carried; or all of them for one reason ("alltoallw: argument", "windows: dynamic", "messages:
    all"), or all calls for one reason. Calls of communicators of one rank always may, and those of deferred ones if some of the
    operation's are carried.
    """

    to_the_host: frozenset[str] = field(default_factory=frozenset)
    nothing: bool = False  # the host has to have served all of it
    looked_at: bool = True
    anywhere: bool = False  # what has to have been carried may be so on any rank, not by the first one

    def but(self, *rows: str) -> Served:
        """The same, with further rows of which calls may be the host's."""
        return replace(self, to_the_host=self.to_the_host | set(rows))

    def complaints(self, ranks: list[Statistics]) -> list[str]:
        """What a job's statistics say against it, row: figures; a rank without any is a complaint of who wants anything served."""
        if not self.looked_at:
            return []
        if self.nothing:
            return list(_rows(ranks)[0].values())
        absent = missing(ranks)
        found = [] if ranks else ["no rank has written statistics"]
        found += [f"ranks without statistics: {absent}"] if absent else []
        for some in [ranks] if self.anywhere else [ranks[:1], ranks]:
            ours, theirs = _rows(some)
            for row, said in theirs:
                name, _, reason = row.partition(": ")
                complaint = f"{row}: {said}"
                in_part = name in self.to_the_host or reason == WHILE_DEFERRED
                if reason == OF_ONE_RANK:
                    continue
                if not {row, reason} & self.to_the_host and not (in_part and name in ours):
                    found += [complaint] if complaint not in found else []
        return found


def _rows(ranks: list[Statistics]) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """What Nearfield has served, by row, and what the host has, each with the figures of the rank that says so."""
    ours: dict[str, str] = {}
    theirs: list[tuple[str, str]] = []
    for rank in ranks:
        for name, operation in rank.operations.items():
            said = f"rank {rank.rank}: {operation}"
            ours |= {name: f"{name}: {said}"} if operation.carried else {}
            theirs += [(f"{name}: {reason}", said) for reason in operation.why]
        said = f"rank {rank.rank}: {rank.counts}"
        ours |= {"messages": f"messages: {said}"} if rank.sent else {}
        ours |= {"windows": f"windows: {said}"} if rank.counts["windows"] else {}
        theirs += [("messages: all", said)] if rank.counts["messages_to_the_host"] else []
        theirs += [
            (f"windows: {why}", said)
            for why in ("communicator", "memory", "dynamic")
            if rank.counts[f"windows_to_the_host_{why}"]
        ]
    return ours, theirs


EVERYTHING = Served()
OF_ONE_RANK = "communicator of one rank"
WHILE_DEFERRED = "team is deferred"  # the first calls of communicators that a program has made
# For a launch whose communicators are to have their team at the first call.
AT_ONCE = {"NEARFIELD_DEFER": "0"}
NOTHING = Served(nothing=True)
# Of a job that is to fail, of which ranks run without Nearfield, or that is about what is served and looks itself.
UNKNOWN = Served(looked_at=False)


def launch(
    host: str,
    ranks: int,
    program: list[str],
    env: dict[str, str] | None = None,
    timeout: float = 60,
    nearfield: bool = True,
    options: tuple[str, ...] = (),
    served: Served = EVERYTHING,
    statistics: bool = False,
    around: tuple[str, ...] = (),
) -> Completed:
    """Runs `program` on `ranks` ranks of `host`; fails where a job that ends well was not served as `served` states.

    `around` stands in front of the launcher's command line: a program that changes what the job meets.
    `statistics`: has all ranks write theirs also where `served` does not look at them. A rank that dies, or ends without
    MPI_Finalize, writes none; the others do where they come to MPI_Finalize.
    """
    env = dict(env or {})
    # A test of the statistics themselves has them where it wants them.
    collects = nearfield and (served.looked_at or statistics) and VARIABLE not in env
    with tempfile.TemporaryDirectory() as directory:
        if collects:
            Path(directory).chmod(0o1777)
            env[VARIABLE] = f"{directory}/{PATTERN}"
        arguments, env = command(host, ranks, program, options), environment(host, nearfield, env)
        for _ in range(3):
            job = run([*around, *arguments], env, timeout)
            if NOT_LAUNCHED not in job.stderr:
                break
        if any(Path(directory).iterdir()):
            job.statistics = read_statistics(Path(directory))
    if collects and job.returncode == 0:
        complaints = served.complaints(job.statistics)
        assert not complaints, "\n".join(["not served as stated:", *complaints, job.text[-2000:]])
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


def start_reporting(
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
    job, processes = start_reporting("mpich", ranks, [*program, str(log)], stderr=subprocess.DEVNULL)
    below = descendants(job.pid)
    try:
        for pid in set(below) - set(processes.values()):
            os.kill(pid, signal.SIGSTOP)
        os.kill(processes[1], signal.SIGKILL)
        end = time.monotonic() + 10
        while time.monotonic() < end and "has ended" not in log.read_text():
            time.sleep(0.05)
        time.sleep(0.2)
        return log.read_text()
    finally:
        for pid in below:
            kill_tree(pid)
        job.wait()


@functools.cache
def compiler_version(compiler: str) -> str:
    """Which compiler it is."""
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout


@functools.cache
def digest(path: str) -> str:
    """Of a file's bytes; empty where there is none."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except FileNotFoundError:
        return ""


def dependencies(compiler: str, arguments: list[str]) -> list[str]:
    """All files that the compiler reads: sources, headers, and libraries that are named by their paths."""
    sources = [one for one in arguments if one.endswith((".c", ".cpp"))]
    options = [one for one in arguments if one.startswith(("-I", "-D", "-std", "-pthread", "-f"))]
    rules = subprocess.run([compiler, "-M", *options, *sources], capture_output=True, text=True, check=True)
    read = re.sub(r"(?m)^\S+:|\\\n", " ", rules.stdout).split()
    return sorted({*read, *(one for one in arguments if one.startswith("/"))})


@functools.cache
def compiled(name: str, arguments: tuple[str, ...], compiler: str = "gcc") -> str:
    """A program or a library that the compiler makes of the arguments; the path of what was made.

    It is made once for all jobs, and anew where a file that the compiler has read is another, or the compiler is.
    """
    key = hashlib.sha256(json.dumps([compiler_version(compiler), *arguments]).encode()).hexdigest()[:12]
    directory = SCRATCH / key
    directory.mkdir(parents=True, exist_ok=True)
    made, record = directory / name, directory / f"{name}.json"
    try:
        if (
            all(digest(path) == known for path, known in json.loads(record.read_text()).items())
            and made.exists()
        ):
            return str(made)
    except (FileNotFoundError, ValueError):
        pass
    mine = directory / f"{name}.{os.getpid()}"
    subprocess.run([compiler, *arguments, "-o", str(mine)], check=True)
    read = {path: digest(path) for path in dependencies(compiler, list(arguments))}
    mine.replace(made)
    mine.write_text(json.dumps(read))
    mine.replace(record)
    return str(made)


def compile_c(host: str, source: str, *options: str) -> str:
    """Compiles programs/SOURCE for the host's ABI; the path of the program."""
    compiler = ["-O1", "-g1", f"-I{HOSTS[host].include}", str(PROGRAMS / source), *options]
    return compiled(f"{Path(source).stem}-{host}", (*compiler, str(HOSTS[host].library), "-lm", "-lpthread"))


def compile_for_the_standard_abi(source: str, library: Path = STANDARD, *options: str) -> str:
    """The same for MPI's standard ABI, whose header is called mpi.h for its users."""
    include = SCRATCH / "abi-include"
    include.mkdir(parents=True, exist_ok=True)
    if not (include / "mpi.h").exists():
        (include / "mpi.h").write_text("#include <mpi_abi.h>\n")
    compiler = ("-O1", "-g1", f"-I{include}", f"-I{ROOT}/.venv/include", str(PROGRAMS / source))
    return compiled(f"{Path(source).stem}-abi", (*compiler, str(library), "-lpthread", *options))


def compile_library(source: Path, name: str, *options: str) -> str:
    """Compiles a library that knows no MPI; its path. Each stands in a directory of its own."""
    return compiled(name, ("-O1", "-g1", "-shared", "-fPIC", str(source), *options, "-ldl"))


def carried(job: Completed, operation: str) -> int:
    """Calls of `operation` that Nearfield carried itself, of the first rank that has written statistics."""
    return job.statistics[0].carried(operation) if job.statistics else 0


def sent(job: Completed) -> int:
    """Messages, and notes about them, that it sent."""
    return job.statistics[0].sent if job.statistics else 0
