"""Limits of a control group, as containers have them: CPU time and memory. They are set in a guest, whose groups are nobody else's."""

from __future__ import annotations

import os

import pytest

from tests.guest.guest import Guest
from tests.mpi.jobs import Completed, compile_c, environment, hosts
from tests.mpi.jobs import command as command_of

GROUPS = "/tmp/groups"
MIB = 1 << 20
MORE = 16 * MIB  # of two ranks: segments, fastboxes and the shared heap
# A group of its own for each job; what it has taken at most is said at the end.
ENTER = f"""
mkdir -p {GROUPS} && {{ mountpoint -q {GROUPS} || mount -t cgroup2 none {GROUPS}; }} &&
echo +memory +cpu > {GROUPS}/cgroup.subtree_control && mkdir {GROUPS}/$$ && cd {GROUPS}/$$ || exit 90
for limit in $LIMITS; do echo "${{limit#*=}}" | tr , ' ' > ${{limit%%=*}} || exit 91; done
(echo 0 > cgroup.procs; cd /; exec "$@"); status=$?
echo peak $(cat memory.peak) throttled $(sed -n 's/^nr_throttled //p' cpu.stat); exit $status
"""


def limited(
    guest: Guest, host: str, ranks: int, nearfield: bool, limits: str = ""
) -> tuple[Completed, int, int]:
    """A job in a group with limits (FILE=VALUE FILE=VALUE, a comma for a blank); the most bytes that it had, and how often it
    was throttled."""
    words = command_of(host, ranks, [compile_c(host, "contained.c"), "16384"])
    env = environment(host, nearfield) | {"LIMITS": limits}
    added = {name: value for name, value in env.items() if os.environ.get(name) != value}
    job = guest.run(["sh", "-c", ENTER, "sh", *words], added, timeout=300)
    told = job.stdout.rpartition("peak ")[2].split()
    assert len(told) == 3, job.text
    return job, int(told[0]), int(told[2])


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_a_job_runs_in_little_more_memory_than_the_plain_host_needs(flat: Guest, host: str) -> None:
    job, plain, _ = limited(flat, host, 2, nearfield=False)
    assert "good" in job.stdout, job.text
    job, ours, _ = limited(flat, host, 2, nearfield=True, limits=f"memory.max={plain + MORE}")
    print(f"{host}: {plain / MIB:.1f} MiB plain, {ours / MIB:.1f} MiB with Nearfield")
    assert "good" in job.stdout, job.text


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_a_job_runs_on_less_than_a_cpu_for_each_rank(flat: Guest, host: str) -> None:
    job, _, throttled = limited(flat, host, 2, nearfield=True, limits="cpu.max=100000,100000")
    assert "good" in job.stdout and throttled, job.text
