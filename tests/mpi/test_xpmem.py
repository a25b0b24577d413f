"""Memory that lies in no heap, reached by XPMEM; another library stands in for it, which maps what is a file's."""

from pathlib import Path

import pytest

from tests.mpi.jobs import HEAP, HOSTS, LIBRARY, PROGRAMS, Completed, compile_library, hosts
from tests.mpi.scenario_jobs import good_scenarios
from tests.selection import per_change

BOTH = hosts("mpich", "openmpi")
DIRECT = {
    "NEARFIELD_ALGORITHM": "allreduce:direct;bcast:direct",
    "NEARFIELD_PROTOCOL": "mapped",
}


@pytest.fixture(scope="module")
def stand_in() -> str:
    """The directory of the library."""
    source = PROGRAMS.parents[1] / "xpmem" / "stand_in.c"
    return str(Path(compile_library(source, "libxpmem.so.0")).parent)


def run(host: str, ranks: int, library: str, env: dict[str, str], *arguments: str) -> Completed:
    env = DIRECT | env | {"LD_LIBRARY_PATH": f"{library}:{HOSTS[host].library.parent}"}
    env["LD_PRELOAD"] = f"{library}/libxpmem.so.0:{LIBRARY}:{HEAP}"  # there is no device
    return good_scenarios(host, ranks, " ".join(["foreign", *arguments]), env=env)[0].job


def algorithms(job: Completed) -> list[str]:
    return job.stdout.split("algorithms", 1)[1].splitlines()[0].split()


def received_directly(job: Completed) -> int:
    return job.statistics[0].counts["messages_direct"]


@pytest.mark.parametrize("heap", ["shared", "off"])
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("host", BOTH)
def test_any_memory_is_reached(host: str, ranks: int, heap: str, stand_in: str) -> None:
    job = run(host, ranks, stand_in, {"NEARFIELD_HEAP": heap})
    assert algorithms(job) == ["direct", "direct"], job.stdout
    assert received_directly(job) == 30, job.text


@pytest.mark.parametrize("reach", ["^xpmem", "^cma,^xpmem"])
@pytest.mark.parametrize("host", per_change(BOTH))
def test_it_can_be_left_out(host: str, reach: str, stand_in: str) -> None:
    job = run(host, 2, stand_in, {"NEARFIELD_REACH": reach})
    assert "direct" not in algorithms(job), job.stdout
    assert received_directly(job) == 0, job.text


@pytest.mark.parametrize("host", per_change(BOTH))
def test_it_reaches_what_mapped_would(host: str, stand_in: str) -> None:
    job = run(host, 2, stand_in, {"NEARFIELD_REACH": "^mapped"})
    assert algorithms(job) == ["direct", "direct"], job.stdout


@pytest.mark.parametrize("host", per_change(BOTH))
def test_forks_change_nothing(host: str, stand_in: str) -> None:
    job = run(host, 2, stand_in, {}, "fork")
    assert algorithms(job) == ["direct", "direct"], job.stdout


@pytest.mark.parametrize(
    "what", ["make:1", "get:1", "attach:1", "attach:3", "detach:1", "release:1", "remove:1"]
)
def test_a_failure_takes_it_out_and_says_so(what: str, stand_in: str) -> None:
    job = run("mpich", 2, stand_in, {"XPMEM_FAILS": what, "NEARFIELD_LOG": "info"})
    said = [line for line in job.stderr.splitlines() if "XPMEM is left out" in line]
    out = what.split(":")[0] in ("make", "get", "attach")
    assert len(said) == (2 if out else 0), job.text  # one line a rank
    assert ("direct" in algorithms(job)) != out, job.stdout


def test_ordinary_memory_that_the_library_cannot_map(stand_in: str) -> None:
    job = run("mpich", 2, stand_in, {"NEARFIELD_HEAP": "off"}, "private")
    assert "direct" not in algorithms(job), job.stdout
