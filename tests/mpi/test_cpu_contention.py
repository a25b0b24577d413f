"""Jobs whose CPUs others want too, or whose CPUs are taken away while they run: results are right, and they end."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nearfield.beside import Beside
from nearfield.hosts import bound
from tests.mpi.jobs import hosts
from tests.mpi.scenario_jobs import good_scenarios
from tests.selection import per_change

MAIN = hosts("mpich", "openmpi")
ROUNDS = 60


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("host", MAIN)
def test_cpus_change_while_it_runs(host: str, ranks: int) -> None:
    good_scenarios(host, ranks, f"contended_rounds shrink {ROUNDS}", f"contended_rounds wander {ROUNDS}")


def idle(pid: int) -> None:
    """It runs where nobody else does."""
    os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))


def nice(pid: int) -> None:
    """It is as nice as can be."""
    os.setpriority(os.PRIO_PROCESS, pid, 19)


@pytest.mark.parametrize(
    ("kind", "made"),
    per_change([("cpu", None), ("cpu", idle), ("waking", nice), ("waking", None), ("memory", nice)], 3),
)
def test_beside_neighbours(kind: str, made: Callable[[int], None] | None) -> None:
    with Beside(3, kind).running() as neighbours:
        for pid in neighbours if made else ():
            made(pid)
        good_scenarios("mpich", 2, f"contended_rounds stay {ROUNDS}", "contended_rounds shrink 30")


@pytest.mark.parametrize("host", MAIN)
def test_a_neighbour_is_noticed_and_told(host: str) -> None:
    env = {"NEARFIELD_LOG": "info"}
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("on one CPU two ranks are oversubscribed, which does not ask")
    (outcome,) = good_scenarios(host, 2, "contention_noticed", env=env)
    text = outcome.job.stderr
    assert re.search(
        r"other processes compete for the CPUs of this process, so its waits sleep \(contention so far: \d+ times",
        text,
    )
    assert any(
        rank.counts["contention"] > 0 and rank.counts["contention_seconds"] > 0
        for rank in outcome.job.statistics
    )


@pytest.mark.parametrize("host", per_change(MAIN))
def test_two_jobs_on_the_same_cpus(host: str) -> None:
    failed: list[BaseException] = []

    def job() -> None:
        try:
            good_scenarios(host, 2, f"contended_rounds stay {ROUNDS}", before=tuple(bound([])))
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    both = [threading.Thread(target=job) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert not failed, failed


@contextlib.contextmanager
def quota(share: float) -> Iterator[Path]:
    """A group of processes that have that many CPUs' time together; skips where there can be none."""
    period = 20_000
    first, second = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
    group = (first if first.is_dir() else second) / f"nearfield-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made: {error}")
    try:
        try:
            if first.is_dir():
                (group / "cpu.cfs_period_us").write_text(str(period))
                (group / "cpu.cfs_quota_us").write_text(str(int(share * period)))
            else:
                (group / "cpu.max").write_text(f"{int(share * period)} {period}")
        except OSError as error:
            pytest.skip(f"control groups have no quota here: {error}")
        yield group
    finally:
        until = time.monotonic() + 10  # who was killed takes a moment to leave
        while time.monotonic() < until and (group / "cgroup.procs").read_text():
            time.sleep(0.01)
        group.rmdir()


@pytest.mark.parametrize("host", per_change(MAIN))
@pytest.mark.parametrize("share", [1.5, 0.5])
def test_a_quota_of_cpu_time(host: str, share: float) -> None:
    with quota(share) as group:
        # Each rank enters it by itself: launchers may start ranks by a daemon.
        enter = ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")
        good_scenarios(host, 2, f"contended_rounds stay {ROUNDS}", before=enter)
        throttled = re.search(r"nr_throttled (\d+)", (group / "cpu.stat").read_text())
        assert throttled
