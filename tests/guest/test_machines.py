"""That guests are the machines that they are described as, and run commands as they should."""

from __future__ import annotations

import functools
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guest.guest import Guest
from tests.guest.initramfs import archive
from tests.guest.machines import MACHINES
from tests.guest.packages import MODULES, Unavailable, fetch
from tests.mpi.jobs import BUILD, ROOT, SCRATCH

PROGRAMS = Path(__file__).parent / "programs"
MIB = 1 << 20
EVERY = list(MACHINES)


@functools.cache
def compiled(source: str, *options: str) -> str:
    """The path of one of the programs here, compiled without any MPI."""
    SCRATCH.mkdir(exist_ok=True)
    program = SCRATCH / f"{Path(source).stem}-guest"
    command = ["gcc", "-O1", "-Wall", "-Werror", "-o", str(program), str(PROGRAMS / source), *options]
    subprocess.run(command, check=True)
    return str(program)


@pytest.mark.parametrize("name", EVERY)
def test_hwloc_sees_the_nodes(booted: Callable[[str], Guest], name: str) -> None:
    guest = booted(name)
    ended = guest.run([compiled("memory_nodes.c", "-lhwloc")])
    assert ended.returncode == 0, ended.text
    seen = {int(words[0]): words[1:] for words in map(str.split, ended.stdout.splitlines())}
    assert sorted(seen) == list(range(len(guest.machine.nodes)))
    for index, node in enumerate(guest.machine.nodes):
        size, cpus, bandwidth, latency, cache = seen[index]
        # The kernel keeps some for itself, of small nodes and of the first.
        assert 0.75 * node.mebibytes * MIB < int(size) <= 1.1 * node.mebibytes * MIB
        first, last = guest.machine.nodes[guest.machine.home(index)].cpus
        assert int(cpus, 16) == sum(1 << cpu for cpu in range(first, last + 1))
        assert int(bandwidth) == node.bandwidth << 10 and int(latency) == node.latency
        assert int(cache) == node.cache * MIB


@pytest.mark.parametrize("name", EVERY)
def test_nearfield_sees_the_nodes(booted: Callable[[str], Guest], name: str) -> None:
    guest = booted(name)
    ended = guest.run([str(ROOT / "build" / BUILD / "bin/nearfield-probe")])
    assert ended.returncode == 0, ended.text
    found = json.loads(ended.stdout)
    assert found["topology"]["packages"] == len([node for node in guest.machine.nodes if node.cpus])
    seen = {node["node"]: node for node in found["placement"]["nodes"]}
    assert sorted(seen) == list(range(len(guest.machine.nodes)))
    for index, node in enumerate(guest.machine.nodes):
        assert seen[index]["bandwidth"]["value"] == node.bandwidth << 10
        assert seen[index]["latency"]["value"] == node.latency


def test_the_kernel_tells_distances(per_socket: Guest) -> None:
    nodes = range(len(per_socket.machine.nodes))
    ended = per_socket.run(["cat", *(f"/sys/devices/system/node/node{index}/distance" for index in nodes)])
    assert [list(map(int, line.split())) for line in ended.stdout.splitlines()] == [
        [per_socket.machine.distance(index, other) for other in nodes] for index in nodes
    ]


def test_output_status_and_environment_come_back(flat: Guest) -> None:
    ended = flat.run(["sh", "-c", 'echo "$WORD"; pwd; echo no >&2; exit 3'], {"WORD": "a 'b' \"c\"\n$d"})
    assert (ended.returncode, ended.timed_out) == (3, False)
    assert ended.stdout == f"a 'b' \"c\"\n$d\n{Path.cwd()}\n"
    assert ended.stderr == "no\n"


def test_nothing_outlives_a_command(flat: Guest) -> None:
    left = flat.run(["sh", "-c", "echo x > /dev/shm/left; setsid sleep 1000 > /dev/null 2>&1 & exit 0"])
    assert left.returncode == 0
    for _ in range(5):  # what is killed may take a moment to go
        seen = flat.run(["sh", "-c", "ls /dev/shm; cat /proc/[0-9]*/comm"]).stdout.split()
        assert "sh" in seen and "left" not in seen
        if "sleep" not in seen:
            return
    pytest.fail("a process is still there")


def test_the_host_s_files_stay_as_they_are(flat: Guest, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("before")
    ended = flat.run(["sh", "-c", f"cat {tmp_path}/file; echo after > {tmp_path}/file; cat {tmp_path}/file"])
    assert ended.stdout == "beforeafter\n"
    assert (tmp_path / "file").read_text() == "before"


def test_a_command_that_takes_too_long_is_killed(flat: Guest) -> None:
    begin = time.monotonic()
    ended = flat.run(["sleep", "1000"], timeout=2)
    assert ended.timed_out and time.monotonic() - begin < 100
    assert flat.run(["true"]).returncode == 0


def test_a_guest_leaves_nothing(booted: Callable[[str], Guest]) -> None:
    with Guest(booted("flat").machine) as guest:
        scratch, process = guest.scratch, guest.process
        assert scratch.exists() and process.poll() is None
    assert not scratch.exists() and process.poll() is not None
    assert not guest.alive


def test_modules_come_after_what_they_need() -> None:
    try:
        names = [path.stem.split("-", 1)[1] for path in fetch().modules]
    except Unavailable as why:
        pytest.skip(str(why))
    assert set(MODULES) <= set(names) and len(set(names)) == len(names)
    assert names.index("virtio_ring") < names.index("virtio") < names.index("virtio_pci")
    assert names.index("9pnet") < names.index("9p")


def test_an_archive_is_what_cpio_writes() -> None:
    assert archive([("a", 0o100644, b"hello")]) == (
        b"07070100000001000081A4000000000000000000000001000000000000000500000000000000000000000000000000000000020000"
        b"0000a\0hello\0\0\0"
        b"0707010000000200000000000000000000000000000001000000000000000000000000000000000000000000000000000000"
        b"0B00000000TRAILER!!!\0\0\0\0"
    )
