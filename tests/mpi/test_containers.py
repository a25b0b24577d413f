"""What containers take away from a job: never does Nearfield fail where the plain host runs.

A container is made of what it consists of: namespaces (unshare), mounts, denied system calls (programs/deny.c), dropped
capabilities; around the whole job, or around each rank. docs/user/containers.md has a table of what is found here.
"""

import functools
import subprocess
import tempfile
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.mpi.jobs import EVERYTHING, UNKNOWN, Completed, Served, compile_c, launch
from tests.selection import FULL

ELEMENTS = "16384"  # 128 KiB: longer than what hosts send by one copy into shared memory


def sh(*lines: str) -> tuple[str, ...]:
    """A shell that prepares something and becomes what follows."""
    return ("sh", "-c", " && ".join([*lines, 'exec "$@"']), "sh")


def mounts(*lines: str) -> tuple[str, ...]:
    """The same with mounts of its own."""
    return ("unshare", "-m", *sh(*lines))


# A /dev without shm; devices are the machine's.
NO_SHM = (
    "new=$(mktemp -d) && mount -t tmpfs none $new",
    "for name in null zero full random urandom tty; do touch $new/$name && mount --bind /dev/$name $new/$name; done",
    "mkdir $new/pts && mount --bind /dev/pts $new/pts && ln -s pts/ptmx $new/ptmx && ln -s /proc/self/fd $new/fd",
    "mount --move $new /dev && rmdir $new",
)
# As Docker's profile and others deny them where a container has no further capabilities.
DENIED = (
    "process_vm_readv,process_vm_writev,kcmp,ptrace,mbind,get_mempolicy,set_mempolicy,move_pages,userfaultfd"
)
USER = ("unshare", "--user", "--map-root-user")
SHM, LOOPBACK = "mount -t tmpfs -o size=64m none /dev/shm", "ip link set lo up"
OWN = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


@dataclass(frozen=True)
class Container:
    """`job` stands in front of the launcher, `rank` in front of each rank's program; {deny} is programs/deny.c.

    `fails` names hosts that do not start such a job, or end it early, whether Nearfield is there or not.
    """

    job: tuple[str, ...] = ()
    rank: tuple[str, ...] = ()
    served: Served = EVERYTHING
    fails: Set[str] = field(default_factory=frozenset)


CONTAINERS = {
    "shm of 64 MB": Container(job=mounts("mount -t tmpfs -o size=64m none /dev/shm")),
    "shm of 1 MB": Container(job=mounts("mount -t tmpfs -o size=1m none /dev/shm")),
    "no shm": Container(job=mounts(*NO_SHM)),
    "denied calls": Container(job=("{deny}", DENIED)),
    "no membarrier": Container(job=("{deny}", "membarrier")),
    "no memfd": Container(job=("{deny}", "memfd_create"), served=UNKNOWN),
    "no CAP_SYS_PTRACE": Container(job=("setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace")),
    "no capabilities": Container(job=("setpriv", "--bounding-set=-all", "--inh-caps=-all")),
    "user namespace": Container(job=USER),
    "read-only root": Container(job=mounts('mount --bind "$TMPDIR" "$TMPDIR"', "mount -o remount,ro,bind /")),
    "a user namespace each": Container(rank=USER),
    "a PID namespace each": Container(rank=OWN, fails={"openmpi"}),
    "PID and IPC each": Container(rank=(*OWN, "--ipc"), fails={"openmpi"}),
    "PID, IPC and shm each": Container(rank=(*OWN, "--ipc", *sh(SHM)), fails={"mpich", "openmpi"}),
    "PID and network each": Container(rank=(*OWN, "--net", *sh(LOOPBACK)), fails={"mpich", "openmpi"}),
    "everything each": Container(
        rank=(*OWN, "--ipc", "--net", "--uts", *sh(LOOPBACK, SHM)), fails={"mpich", "openmpi"}
    ),
}
# Those that run for every change: quick, and each takes away something else.
PER_CHANGE = {
    "mpich": (
        "shm of 64 MB",
        "denied calls",
        "no memfd",
        "read-only root",
        "a user namespace each",
        "a PID namespace each",
    ),
    "openmpi": ("shm of 1 MB", "denied calls"),
}


@functools.cache
def refused(words: tuple[str, ...]) -> str:
    """Why the kernel does not let this process make such a container; empty where it does."""
    done = subprocess.run([*words, "true"], capture_output=True, text=True, timeout=20)
    return (done.stderr.strip() or f"exit status {done.returncode}") if done.returncode else ""


@pytest.fixture(autouse=True)
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A directory for all that the test and its jobs write, which can be written to where the rest cannot."""
    with tempfile.TemporaryDirectory() as made:
        monkeypatch.setattr(tempfile, "tempdir", made)
        monkeypatch.setenv("TMPDIR", made)
        yield made


def contained(
    name: str, host: str, nearfield: bool = True, timeout: float = 30, env: dict[str, str] | None = None
) -> Completed:
    """The job of a host in that container; skips where there can be none."""
    container = CONTAINERS[name]
    deny = compile_c("debian-mpich", "deny.c")
    job, rank = (tuple(word.replace("{deny}", deny) for word in of) for of in (container.job, container.rank))
    for words in (job, rank):
        if words and (why := refused(words)):
            pytest.skip(f"no such container can be made here: {why}")
    return launch(
        host,
        2,
        [*rank, compile_c(host, "contained.c"), ELEMENTS],
        env={"NEARFIELD_LOG": "info"} | (env or {}),
        timeout=timeout,
        nearfield=nearfield,
        served=container.served,
        around=job,
    )


def cases(fail: bool) -> list:
    """Containers and hosts of which jobs fail by the host's doing, or do not."""
    return [
        pytest.param(name, host, marks=[] if name in PER_CHANGE[host] else [FULL])
        for host in ("mpich", "openmpi")
        for name, container in CONTAINERS.items()
        if (host in container.fails) == fail
    ]


@pytest.mark.parametrize(("name", "host"), cases(fail=False))
def test_a_job_is_served(name: str, host: str) -> None:
    job = contained(name, host)
    assert job.returncode == 0 and "good" in job.stdout, job.text
    if name == "denied calls":
        assert "CMA does not reach" in job.stderr, job.stderr
    if name == "no memfd":
        assert "memfd" in job.stderr, job.stderr


@pytest.mark.parametrize(("name", "host"), cases(fail=True))
def test_what_fails_is_the_hosts(name: str, host: str) -> None:
    """Its start, or memory of its own. Where one of these begins to work, docs/user/containers.md and CONTAINERS have to be told."""
    for nearfield in (False, True):
        assert "good" not in contained(name, host, nearfield, timeout=10).stdout, f"nearfield: {nearfield}"


def test_files_of_ranks_with_the_same_process_number_have_names_of_their_own(temporary: str) -> None:
    env = {"NEARFIELD_RECORD": f"{temporary}/record", "NEARFIELD_TRACE": f"{temporary}/%h.%p.%r.trace"}
    job = contained("a PID namespace each", "mpich", env=env)
    assert "good" in job.stdout, job.text
    assert len(list(Path(temporary).glob("record/*.json"))) == 2
    assert len(list(Path(temporary).glob("*.trace"))) == 2
