"""mpi4py's own test suite under Nearfield: no failure that the plain host does not have."""

import re

import pytest

from tests.mpi.jobs import EVERYTHING, ROOT, Completed, hosts, launch, python_of
from tests.selection import FULL

SUITE = ROOT / ".hosts/mpi4py-tests/test"
# Spawning is the host's alone, and needs a launcher that some hosts do not offer here.
# The rest is what its tests ask the host for: spawned processes, wrong arguments, other kinds of windows.
SERVED = EVERYTHING.but(
    "windows", "messages", "barrier: communicator not on one node", "gather: argument", "scatter: argument"
)
OPTIONS = ["-v", "-e", "spawn", "-e", "dynproc"]
# With more ranks than cores point-to-point tests take minutes on a plain host; these make collective or one-sided calls.
COLLECTIVE_MODULES = [
    "cco_buf",
    "cco_buf_inter",
    "cco_obj",
    "cco_vec",
    "comm",
    "comm_topo",
    "comm_inter",
    "errhandler",
    "win",
    "rma_nb",
]
# Of one process each, minutes of Python, and files, which are the host's: one rank is enough for them.
LOCAL_MODULES = ["datatype", "util_dtlib", "address", "doc", "pickle", "io"]


def failures(job: Completed) -> set[str]:
    """Names of the tests that failed."""
    return set(re.findall(r"^(?:FAIL|ERROR): (\w+ \([\w.]+\))", job.text, re.MULTILINE))


def suite(host: str, ranks: int, nearfield: bool) -> Completed:
    """Runs the suite."""
    modules = COLLECTIVE_MODULES if ranks > 2 else []
    selection = [word for module in modules for word in ("-i", f"test_{module}")]
    if ranks == 2:
        selection = [word for module in LOCAL_MODULES for word in ("-e", f"test_{module}")]
    return launch(
        host,
        ranks,
        [python_of(host), str(SUITE / "main.py"), *OPTIONS, *selection],
        env={"NEARFIELD_STALL_SECONDS": "30"},
        timeout=600,
        nearfield=nearfield,
        served=SERVED,
    )


@pytest.mark.every_host
@pytest.mark.parametrize(
    ("host", "ranks"),
    [
        pytest.param(host.values[0], ranks, marks=[*host.marks, *[FULL] * (ranks != 2)])
        for host, counts in zip(hosts("mpich", "openmpi"), ((1, 2, 3, 4, 5), (1, 2, 5)), strict=True)
        for ranks in counts
    ],
)
def test_suite_passes_as_on_the_plain_host(host: str, ranks: int) -> None:
    job = suite(host, ranks, nearfield=True)
    assert not job.timed_out, job.text[-4000:]
    ran = re.search(r"Ran (\d+) tests", job.text)
    assert ran and int(ran[1]) > (300 if ranks > 2 else 1200), job.text[-4000:]
    failed = {name for name in failures(job) if "testGetFortranInfo" not in name}
    if failed:
        # Only now is it worth the time to ask the plain host.
        failed -= failures(suite(host, ranks, nearfield=False))
    assert not failed, job.text[-6000:]
