"""Memory that lies in no heap, reached by XPMEM; another library stands in for it, which maps what is a file's."""

from pathlib import Path

import pytest

from tests.mpi.jobs import HEAP, HOSTS, LIBRARY, PROGRAMS, Completed, compile_library, hosts
from tests.mpi.scenario_jobs import good_scenarios

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


def run(host: str, ranks: int, library: str, env: dict[str, str]) -> Completed:
    env = DIRECT | env | {"LD_LIBRARY_PATH": f"{library}:{HOSTS[host].library.parent}"}
    env["LD_PRELOAD"] = f"{library}/libxpmem.so.0:{LIBRARY}:{HEAP}"  # there is no device
    return good_scenarios(host, ranks, "foreign", env=env)[0].job


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
