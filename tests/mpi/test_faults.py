"""What goes wrong on real machines: killed ranks, denied system calls, small limits, wrong programs."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.mpi.jobs import (
    EVERYTHING,
    LIBRARY,
    SCRATCH,
    UNKNOWN,
    Completed,
    carried,
    compile_c,
    hosts,
    kill_tree,
    launch,
    report_after_kill,
    start_reporting,
)
from tests.mpi.scenario_jobs import command_line

BOTH = hosts("mpich", "openmpi")


def left_behind() -> set[str]:
    """Files in /dev/shm except for the hosts' own, and anything in /tmp that bears our name."""
    own = re.compile(r"mpich_shm|vader|sm_segment|ompi|prte|psm")
    found = [path for path in Path("/dev/shm").iterdir() if not own.search(path.name)]
    return {str(path) for path in [*found, *Path("/tmp").glob("*nearfield*")]}


def alive(pid: int) -> bool:
    """Whether a process runs; one that is dead but not yet reaped by its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.alone
def test_survivors_report_a_killed_rank() -> None:
    before = left_behind()
    report = report_after_kill(3, [compile_c("mpich", "killed.c"), "collectives"])
    assert re.search(r"rank 1 \(process \d+\).*ended", report), report
    assert left_behind() <= before | {str(SCRATCH)}


@pytest.mark.alone
@pytest.mark.parametrize("left", ["ahead", "buffered"])
def test_so_they_do_with_what_they_have_left(left: str) -> None:
    report = report_after_kill(3, [compile_c("mpich", "killed.c"), left])
    assert re.search(r"rank 1 .*has ended", report), report


@pytest.mark.alone
def test_killing_everything_leaves_nothing() -> None:
    compile_c("mpich", "killed.c")
    before = left_behind()
    job, processes = start_reporting("mpich", 4, [compile_c("mpich", "killed.c"), "collectives"])
    kill_tree(job.pid)
    job.communicate(timeout=20)
    time.sleep(0.5)
    assert not [pid for pid in processes.values() if alive(pid)]
    assert left_behind() <= before | {str(SCRATCH)}


def test_a_way_can_be_left_out() -> None:
    job = launch(
        "mpich", 2, [compile_c("mpich", "several.c")], env={"NEARFIELD_REACH": "^cma"}, statistics=True
    )
    assert "good" in job.stdout and carried(job, "allreduce") == 1, job.text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_is_served(tmp_path_factory: pytest.TempPathFactory) -> None:
    program = compile_c("debian-mpich", "several.c")
    public = Path("/var/tmp") / f"nearfield-public-{os.getpid()}"
    shutil.copytree(LIBRARY.parent, public)
    try:
        shutil.copy(program, public / "program")
        for path in [public, *public.iterdir()]:
            path.chmod(0o755)
        env = {"LD_PRELOAD": str(public / "libnearfield.so"), "HOME": "/tmp"}
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        job = launch("debian-mpich", 2, [*user, str(public / "program"), "plain"], env=env, statistics=True)
        assert "good" in job.stdout and carried(job, "allreduce") == 1, job.text
    finally:
        shutil.rmtree(public)


FLOOD = """
import os, re, socket
if os.geteuid() == 0:
    os.setuid(65534)
out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
while True:
    for name in re.findall(r"@(nearfield-\\S+)", open("/proc/net/unix").read()):
        try:
            while True:
                out.sendto(b"x", b"\\0" + name.encode())
        except OSError:
            pass
"""


@pytest.mark.parametrize("host", BOTH)
def test_another_users_letters_delay_nobody(host: str) -> None:
    program = [compile_c(host, "several.c"), "plain"]
    flood = subprocess.Popen([sys.executable, "-c", FLOOD])
    try:
        start = time.monotonic()
        job = launch(host, 3, program, statistics=True)
        assert "good" in job.stdout and carried(job, "allreduce") == 1, job.text
        assert time.monotonic() - start < 20
    finally:
        flood.kill()
        flood.wait()


@pytest.mark.parametrize("host", BOTH)
def test_a_program_that_calls_nothing_ends(host: str) -> None:
    job = launch(host, 2, command_line(host), served=EVERYTHING)
    assert not job.timed_out and job.returncode == 0, job.text


def test_a_stall_is_reported_once() -> None:
    job = launch("mpich", 2, [compile_c("mpich", "several.c"), "stall"], env={"NEARFIELD_STALL_SECONDS": "1"})
    assert "good" in job.stdout
    reports = re.findall(r"hang report of 2 ranks on this node, by rank 1", job.stderr)
    assert len(reports) == 1 and "rank 1 waits in MPI_Barrier" in job.stderr, job.stderr


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("roots", ["root 0", "root 1"]),
        ("lengths", ["32 bytes", "24 bytes"]),
        ("operators", ["sum", "max"]),
        ("collectives", ["bcast", "barrier"]),
        ("parts", ["with other lengths for single ranks"]),
        ("combined parts", ["with other lengths for single ranks"]),
    ],
)
def test_different_calls_are_named(what: str, names: list[str]) -> None:
    program = [compile_c("mpich", "several.c"), "different", what]
    job = launch("mpich", 3, program, env={"NEARFIELD_CHECK": "1"}, timeout=20)
    assert not job.timed_out and job.returncode != 0, job.text
    for name in ["rank 0", "rank 1", *names]:
        assert name in job.stderr, job.stderr


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
@pytest.mark.parametrize(("what", "longer"), [("longer", 32), ("far longer", 480000)])
def test_lengths_that_differ_are_named_without_asking(host: str, what: str, longer: int) -> None:
    job = launch(host, 3, [compile_c(host, "several.c"), "different", what], timeout=30)
    assert not job.timed_out and job.returncode != 0, job.text
    assert f"rank 1 has {longer} bytes where ranks 0, 2 have 24 bytes" in job.stderr, job.stderr


# Open MPI serves fault-tolerant programs where it is asked to; MPICH's build does not.
TOLERANT = ("--with-ft", "ulfm")
WAITS = [
    *(
        "barrier",
        "ibarrier",
        "both barriers",
        "bcast",
        "alltoallv",
        "recv",
        "any",
        "probe",
        "mprobe",
        "send",
        "ssend",
    ),
    *("test", "waitall", "overlapping"),
]


@pytest.mark.parametrize("host", hosts("openmpi"))
def test_revoking_ends_waits(host: str) -> None:
    # The communicators that the program shrinks to are the host's, and so are first calls that wait for all.
    deferred = [f"{operation}: team is deferred" for operation in ("barrier", "bcast")]
    served = EVERYTHING.but("allreduce", "barrier: communicator not on one node", "messages", *deferred)
    job = launch(host, 3, [compile_c(host, "revokes.c"), *WAITS], options=TOLERANT, timeout=60, served=served)
    assert not job.timed_out and "good" in job.stdout, job.text


@pytest.mark.parametrize("host", hosts("openmpi"))
@pytest.mark.parametrize("wait", ["barrier", "alltoallv", "recv", "waitall", "probe", "overlapping"])
def test_a_dead_rank_is_an_error_that_programs_survive(host: str, wait: str) -> None:
    program = [compile_c(host, "revokes.c"), "dead", wait]
    job = launch(host, 3, program, options=TOLERANT, timeout=30, served=UNKNOWN)
    assert not job.timed_out and "good" in job.stdout, job.text


# Each call at one of these, and everywhere where all is tested.
PLACES = [(2, "world"), (3, "dup"), (3, "split")]
POLLS = [
    *(
        "test",
        "testall",
        "testany",
        "testsome",
        "get_status",
        "iprobe",
        "any_iprobe",
        "improbe",
        "send",
        "any",
        "ibarrier",
    ),
    *("iallreduce", "ialltoallv", "persistent", "partitioned", "parrived", "mixed_testany", "mixed_testsome"),
]
CASES = [
    pytest.param(what, *place, marks=[] if (i + k) % 3 == 0 else [pytest.mark.full])
    for i, what in enumerate(POLLS)
    for k, place in enumerate(PLACES)
]


def polls_dead(host: str, what: str, ranks: int, where: str, *options: str) -> Completed:
    """A job whose rank 0 dies while the others poll for it; it has ended by itself."""
    program = [compile_c(host, "polls_dead.c"), what, where]
    job = launch(host, ranks, program, options=options, timeout=30, served=UNKNOWN)
    assert not job.timed_out, job.text
    return job


@pytest.mark.parametrize("host", hosts("openmpi"))
@pytest.mark.parametrize(("what", "ranks", "where"), CASES)
def test_calls_that_poll_learn_of_a_death(host: str, what: str, ranks: int, where: str) -> None:
    job = polls_dead(host, what, ranks, where, *TOLERANT)
    told = re.findall(r"rank \d: (\w+) after (\S+) s", job.stdout)
    assert len(told) == (1 if where == "split" else ranks - 1), job.text
    for answer, seconds in told:
        assert answer == ("pending" if what == "any" else "failed") and float(seconds) < 1.5, job.text


@pytest.mark.parametrize("host", hosts("openmpi"))
@pytest.mark.parametrize("what", ["any", "iprobe"])
def test_a_death_is_none_of_the_business_of_others(host: str, what: str) -> None:
    job = polls_dead(host, what, 3, "apart", *TOLERANT)
    assert "apart" in job.stdout and "without the dead" not in job.stdout, job.text


@pytest.mark.parametrize("host", hosts("openmpi"))
def test_receives_from_anybody_go_on_once_a_death_is_acknowledged(host: str) -> None:
    job = polls_dead(host, "any", 3, "acknowledged", *TOLERANT)
    assert job.stdout.count("pending") == 2 and "received" in job.stdout, job.text


@pytest.mark.parametrize("host", hosts("openmpi"))
@pytest.mark.parametrize("what", ["sendrecv", "isendrecv", "neighbor", "ineighbor", "waited", "short"])
def test_a_message_to_a_living_rank_outlives_the_death_of_another_partner(host: str, what: str) -> None:
    job = polls_dead(host, what, 3, "between", *TOLERANT)
    told = re.search(r"rank 1: failed after (\S+) s", job.stdout)
    assert told and "rank 2: received" in job.stdout and "missing" not in job.stdout, job.text
    assert float(told[1]) > 0.5, job.text  # rank 2 takes part 0.6 s after the death


@pytest.mark.parametrize("host", BOTH)
@pytest.mark.parametrize("what", ["test", "iprobe"])
def test_without_fault_tolerance_a_death_ends_a_job_that_polls(host: str, what: str) -> None:
    job = polls_dead(host, what, 3, "world")
    assert job.returncode != 0, job.text
