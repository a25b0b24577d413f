"""One-sided memory under real MPIs: random programs against a sequential truth, contention, locks, errors, lifetimes."""

import re

import pytest

from tests.mpi.jobs import compile_c, hosts, launch, report_after_kill
from tests.mpi.resident import Jobs

ALL = hosts("mpich", "openmpi", "impi")
# Hosts under which Nearfield serves windows itself. What is promised only then is tested for these.
WITH_ENGINE = ["mpich", "openmpi", "impi"]
SERVED = hosts(*WITH_ENGINE) if WITH_ENGINE else []  # no names are all hosts
CALM = {"NEARFIELD_STALL_SECONDS": "30"}


def good(host: str, ranks: int, source: str, *arguments: str) -> None:
    """Runs a program of C; fails when it hangs, or when a rank found something wrong."""
    job = launch(host, ranks, [compile_c(host, source), *arguments], env=CALM, timeout=60)
    assert not job.timed_out and job.returncode == 0 and "good" in job.stdout, job.text[-3000:]


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


@pytest.mark.parametrize("what", ["counters", "spin", "list", "overlapping", "mixed"])
@pytest.mark.parametrize("host", ALL)
def test_nothing_is_lost_or_torn_under_contention(host: str, what: str) -> None:
    good(host, 8, "contention.c", what, "1")


@pytest.mark.parametrize("what", ["exclusive", "all", "transactions", "shared", "fairness", "unchecked"])
@pytest.mark.parametrize("host", ALL)
def test_locks_exclude_what_they_should(host: str, what: str) -> None:
    good(host, 8, "locks.c", what, "0.6")


@pytest.mark.parametrize("ranks", [4, 7])
@pytest.mark.parametrize("host", ALL)
def test_readers_that_hold_locks_close_no_ring_with_writers(host: str, ranks: int) -> None:
    good(host, ranks, "locks.c", "rings", "1")


@pytest.mark.parametrize("host", SERVED)
def test_locks_are_fair(host: str) -> None:
    good(host, 8, "locks.c", "fairness", "2", "20")


KINDS = ["static", "stack", "heap", "large", "shared", "allocate"]


@pytest.mark.parametrize("kind", KINDS)
def test_targets_that_compute_are_reached(kind: str) -> None:
    for host in ("mpich", "openmpi"):
        good(host, 3, "passive.c", kind)


# Memory that ranks can reach without a kernel module.
@pytest.mark.parametrize("kind", ["large", "shared", "allocate"])
@pytest.mark.parametrize("host", SERVED)
def test_targets_need_not_help(host: str, kind: str) -> None:
    good(host, 3, "passive.c", kind, "alone")


def test_types_are_combined_as_by_the_host() -> None:
    told = {}
    for host in [one.values[0] for one in ALL if not one.marks]:
        # Plain MPICH asserts where an operator is not defined on a type.
        for nearfield in (True,) if host == "mpich" else (False, True):
            job = launch(
                host, 2, [compile_c(host, "window_types.c")], env=CALM, timeout=60, nearfield=nearfield
            )
            assert not job.timed_out and job.returncode == 0 and "good" in job.stdout, job.text[-3000:]
            told[host, nearfield] = job.stdout.splitlines()
            assert len(told[host, nearfield]) > 200
        if host != "mpich":
            assert told[host, True] == told[host, False]
    # What MPI defines is the same everywhere; Open MPI defines the most.
    for line in told["mpich", True]:
        assert "refused" in line or line in told["openmpi", True]


def error_lines(host: str, nearfield: bool, what: str) -> list[str]:
    """What a job of wrong calls says of each."""
    program = [compile_c(host, "window_errors.c"), what]
    job = launch(host, 2, program, env=CALM, timeout=60, nearfield=nearfield)
    assert not job.timed_out and job.returncode == 0 and "good" in job.stdout, job.text[-3000:]
    return re.findall(r"^.*: class \d+, handler .*called$", job.stdout, re.MULTILINE)


@pytest.mark.parametrize("what", ["null", "creation", "arguments", "epochs", "locks"])
@pytest.mark.parametrize("host", ALL)
def test_errors_are_the_hosts(host: str, what: str) -> None:
    plain, ours = (error_lines(host, nearfield, what) for nearfield in (False, True))
    # Where the plain host finds nothing wrong, more may be found. Whether a type is committed only the host knows. Open
    # MPI calls a negative count of results truncation.
    wrong = [
        (a, b)
        for a, b in zip(plain, ours, strict=True)
        if a != b and "class 0," not in a and "not committed" not in a and "result count" not in a
    ]
    assert len(plain) > 5 and not wrong


@pytest.mark.parametrize("what", ["attributes", "queries", "pending"])
@pytest.mark.parametrize("host", ALL)
def test_windows_tell_what_they_are_and_end(host: str, what: str) -> None:
    good(host, 3, "lifetimes.c", what)


# Windows take MPICH and Open MPI tens of milliseconds each, where ranks outnumber CPUs.
@pytest.mark.parametrize("host", ALL)
def test_there_may_be_many_windows(host: str) -> None:
    good(host, 2, "lifetimes.c", "many", "200" if host == "impi" else "60")


@pytest.mark.parametrize("host", ALL)
def test_windows_leave_nothing_behind(host: str) -> None:
    # Enough of them that 2 MiB more, where the kernel joins pages of the heap to a huge one, are no leak.
    good(host, 2, "lifetimes.c", "repeated", "2000")


@pytest.mark.parametrize("host", ALL)
def test_threads_share_windows(host: str) -> None:
    good(host, 3, "window_threads.c")


@pytest.mark.skipif("mpich" not in WITH_ENGINE, reason="the host's locks do not notice")
def test_a_killed_holder_of_a_lock_is_reported() -> None:
    report = report_after_kill(4, [compile_c("mpich", "lock_holder.c")])
    assert re.search(r"rank 1 .*has died; rank 0 was", report) and "got the lock" not in report, report
