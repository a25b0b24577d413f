"""That guests are the machines that they are described as."""

from __future__ import annotations

import functools
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guest.guest import Guest
from tests.guest.machines import MACHINES
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
