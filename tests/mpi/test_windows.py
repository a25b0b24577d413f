"""One-sided memory under real MPIs: random programs against a sequential truth, contention, locks, errors, lifetimes."""

import re
import subprocess

import pytest

from tests.mpi.jobs import (
    EVERYTHING,
    UNKNOWN,
    command,
    compile_c,
    environment,
    hosts,
    launch,
    python_of,
    report_after_kill,
    run,
)
from tests.mpi.resident import Jobs
from tests.mpi.scenario_jobs import Outcome, Scenario, command_line, good_scenarios

ALL = hosts("mpich", "openmpi", "impi")
CALM = {"NEARFIELD_STALL_SECONDS": "30"}


# The host serves dynamic windows, and those of memory that peers do not reach.
SERVED = EVERYTHING.but("windows: dynamic", "windows: memory")


def good(host: str, ranks: int, *scenarios: Scenario) -> None:
    """Scenarios of windows, with all threads that there may be."""
    good_scenarios(host, ranks, *scenarios, threads=True, served=SERVED)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_random_programs(jobs: Jobs, host: str, ranks: int) -> None:
    left = ["windows_to_the_host"]  # dynamic ones, and those of memory that is out of reach
    job = jobs(host, ranks)
    answers = job.run(
        "oracle.windows_running:programs", seed=ranks, rounds=200, seconds=4, left=left, timeout=120
    )
    assert answers[0]["result"]["operations"] > 0
    for answer in answers:
        assert answer["carried"].get("windows", 0) >= answer["result"]["served"], answer


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_targets_that_compute_are_reached(host: str) -> None:
    good(host, 3, *(f"passive {kind}" for kind in ("static", "stack", "heap", "large", "shared", "allocate")))


# Memory that ranks can reach without a kernel module.
@pytest.mark.parametrize("host", ALL)
def test_targets_need_not_help(host: str) -> None:
    good_scenarios(
        host, 3, *(f"passive {kind} alone" for kind in ("large", "shared", "allocate")), threads=True
    )


@pytest.mark.parametrize("host", hosts("openmpi"))
def test_windows_are_freed_in_epochs_where_the_host_does_it(host: str) -> None:
    good_scenarios(host, 2, "window_freed_in_epochs")


@pytest.mark.parametrize("host", ALL)
def test_errors_are_the_hosts(host: str) -> None:
    scenarios = [f"window_errors {what}" for what in ("null", "creation", "arguments", "epochs", "locks")]
    plain, ours = (
        good_scenarios(host, 2, *scenarios, threads=True, nearfield=nearfield, served=UNKNOWN)
        for nearfield in (False, True)
    )
    for theirs, mine in zip(plain, ours, strict=True):
        # Where the plain host finds nothing wrong, more may be found. Whether a type is committed only the host knows. Open
        # MPI calls a negative count of results truncation.
        wrong = [
            (a, b)
            for a, b in zip(error_lines(theirs), error_lines(mine), strict=True)
            if a != b and "class 0," not in a and "not committed" not in a and "result count" not in a
        ]
        assert len(error_lines(theirs)) > 5 and not wrong


def error_lines(done: Outcome) -> list[str]:
    """What a scenario of wrong calls says of each."""
    return [line for line in done.lines if re.fullmatch(r".*: class \d+, handler .*called", line)]


@pytest.mark.parametrize("host", ALL)
def test_windows_are_freed_behind_what_was_put(host: str) -> None:
    good(host, 3, "lifetimes_pending")


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_shared_windows_need_no_room_in_the_hosts_file_system(host: str) -> None:
    # Those of plain hosts end by SIGBUS, or with an error.
    small = 'mount -t tmpfs -o size=48m none /dev/shm && exec "$@"'
    apart = ["unshare", "--mount", "--map-root-user", "sh", "-c", small, "sh"]
    if subprocess.run([*apart, "true"], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    line = command_line(host, "lifetimes_shared 64")
    job = run([*apart, *command(host, 2, line)], environment(host, True), 60)
    assert job.returncode == 0 and "lifetimes_shared: good" in job.stdout, job.text


# Windows take MPICH and Open MPI tens of milliseconds each, where ranks outnumber CPUs.
@pytest.mark.parametrize("host", ALL)
def test_there_may_be_many_windows(host: str) -> None:
    good(host, 2, f"lifetimes_many {200 if host == 'impi' else 60}")


@pytest.mark.full
@pytest.mark.parametrize("host", ALL)
def test_windows_leave_nothing_behind(host: str) -> None:
    # Enough of them that 2 MiB more, where the kernel joins pages of the heap to a huge one, are no leak.
    good(host, 2, "lifetimes_repeated 2000")


@pytest.mark.parametrize("host", ALL)
def test_threads_share_windows(host: str) -> None:
    good(host, 3, "window_threads")


def test_a_killed_holder_of_a_lock_is_reported() -> None:
    report = report_after_kill(4, [compile_c("mpich", "killed.c"), "lock"])
    assert re.search(r"rank 1 .*has ended; rank 0 was", report) and "got the lock" not in report, report


OF_ONE_RANK = """
import numpy as np
from mpi4py import MPI
memory = MPI.Alloc_mem(800)
makers = [lambda c: MPI.Win.Allocate(800, 8, comm=c), lambda c: MPI.Win.Allocate_shared(800, 8, comm=c),
          lambda c: MPI.Win.Create(memory, 8, comm=c)]
for comm in (MPI.COMM_SELF, MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank)):
    for make in makers:
        win = make(comm)
        one, got = np.arange(100.0), np.zeros(100)
        win.Fence()
        win.Put(one, 0)
        win.Fence()
        win.Lock(0)
        win.Accumulate(one, 0, op=MPI.SUM)
        win.Flush(0)
        win.Get(got, 0)
        win.Unlock(0)
        assert (got == 2 * one).all()
        win.Free()
"""


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_those_of_one_rank_are_served(host: str, ranks: int) -> None:
    job = launch(host, ranks, [python_of(host), "-c", OF_ONE_RANK], served=EVERYTHING)
    assert job.returncode == 0 and job.statistics[0].counts["windows"] == 6, job.text[-3000:]
