"""Placement of memory under MPI programs: hints, settings, what is forced, and what the statistics say.

This machine may have one NUMA node only: what is asked of others falls back, visibly. Where memory really lies on several
is the guest's to test.
"""

from pathlib import Path

import pytest

from tests.mpi.jobs import EVERYTHING, Completed, hosts, launch
from tests.mpi.scenario_jobs import command_line
from tests.selection import per_change

BOTH = hosts("mpich", "openmpi")
NODES = [int(path.name[4:]) for path in Path("/sys/devices/system/node").glob("node[0-9]*")]
ABSENT = max(NODES) + 1


def counted(job: Completed) -> dict[str, tuple[int, ...]]:
    """Of every component: bytes asked for, there, elsewhere, unknown; of the first rank."""
    return {
        name: (one.asked, one.placed, one.elsewhere, one.unknown)
        for name, one in job.statistics[0].memory.items()
        if one.wish or one.asked
    }


def run(host: str, hints: list[str], **env: str) -> Completed:
    settings = {"NEARFIELD_LOG": "info"} | env
    return launch(host, 2, command_line(host, ["placement", *hints]), env=settings, served=EVERYTHING)


@pytest.mark.parametrize("host", BOTH)
def test_hints(host: str) -> None:
    expected = {
        "nearfield_memory=local": "there",
        "nearfield_memory=local,forced": "there",
        f"nearfield_memory={ABSENT}": "there",
        f"nearfield_memory={ABSENT},forced": "MPI_ERR_NO_MEM",
        "nearfield_memory=local,max=1M": "there",
        "nearfield_memory=quick": "MPI_ERR_INFO_VALUE",
        "nearfield_memory= ": "there",
        "mpi_memory_alloc_kinds=system,mpi:alloc_mem": "there",
        "mpi_memory_alloc_kinds=cuda:device+nearfield_memory=local": "there",
        "something_else=1": "there",
    }
    job = run(host, list(expected))
    assert job.returncode == 0 and "good" in job.stdout, job.text[-3000:]
    for hints, outcome in expected.items():
        assert f"{hints}: {outcome}\n" in job.stdout, job.text[-3000:]
    assert f"this process has no NUMA node {ABSENT}" in job.stderr, job.stderr[-3000:]
    assert "`quick` is not a word of a placement" in job.stderr, job.stderr[-3000:]
    asked, there, elsewhere, unknown = counted(job)["alloc-mem"]
    assert asked == 4 * (3 << 20), "what fails, what has no such hint and what the host serves does not count"
    assert asked == there + elsewhere + unknown
    if not unknown:
        assert elsewhere >= 3 << 20, "nothing can be on a node that is not there"


@pytest.mark.parametrize("host", BOTH)
def test_every_component_is_placed_and_counted(host: str) -> None:
    job = run(host, [], NEARFIELD_MEMORY="all:local")
    assert job.returncode == 0 and "good" in job.stdout, job.text[-3000:]
    counts = counted(job)
    assert set(counts) == {"fastboxes", "copy-buffers", "windows", "heap", "control", "alloc-mem"}
    for component in ("fastboxes", "copy-buffers", "control"):
        asked, there, _, unknown = counts[component]
        assert asked > 0, component
        assert there + unknown > 0, component


def test_nothing_is_placed_or_loaded_without_a_wish() -> None:
    job = run("mpich", ["something_else=1"])
    assert job.returncode == 0 and "without hwloc\n" in job.stdout, job.text[-3000:]
    assert not counted(job)
    placed = run("mpich", ["nearfield_memory=local"])
    assert placed.returncode == 0 and "with hwloc\n" in placed.stdout, placed.text[-3000:]


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        (f"fastboxes:{ABSENT},forced", f"this process has no NUMA node {ABSENT}"),
        (f"heap:{ABSENT},forced", f"this process has no NUMA node {ABSENT}"),
        ("fastboxes:quick", "`quick` is not a word of a placement"),
        ("boxes:local", "`boxes` is not one of all, fastboxes"),
    ],
)
@pytest.mark.parametrize("host", per_change(BOTH))
def test_a_setting_that_cannot_be_honoured_ends_the_job(host: str, wish: str, why: str) -> None:
    job = run(host, [], NEARFIELD_MEMORY=wish)
    assert job.returncode != 0 and not job.timed_out, job.text[-3000:]
    assert "a setting is not valid" in job.stderr and why in job.stderr, job.stderr[-3000:]


def test_nodes_that_the_kernel_does_not_have_fall_back() -> None:
    """hwloc describes a machine of more nodes than there are."""
    nodes = ABSENT + 1
    described = {"HWLOC_SYNTHETIC": f"numa:{nodes}(memory=1073741824) pu:2"}
    job = run("mpich", [], NEARFIELD_MEMORY=f"fastboxes:{ABSENT};control:local", **described)
    assert job.returncode == 0 and "good" in job.stdout, job.text[-3000:]
    asked, there, elsewhere, unknown = counted(job)["fastboxes"]
    assert asked > 0 and there == 0 and elsewhere + unknown == asked
    assert "asking the kernel to place memory (mbind)" in job.stderr, job.stderr[-3000:]
    forced = run("mpich", [], NEARFIELD_MEMORY=f"fastboxes:{ABSENT},forced", **described)
    assert forced.returncode != 0 and "mbind" in forced.stderr, forced.text[-3000:]
