"""What a rank's memory is above the plain host's: bytes, as the kernel counts them."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.memory import Bytes, measure, middle
from nearfield.libraries import library_directory
from tests.mpi.jobs import HOSTS, SANITIZED, hosts
from tests.selection import FULL

pytestmark = [
    pytest.mark.skipif(SANITIZED, reason="sanitizers need more than everything else"),
    pytest.mark.alone,  # pages of libraries count by how many processes share them
]

MIB = 1024  # KiB
# Pages of libraries are shared by the ranks, and how many are there varies from start to start (Open MPI: by 150 KiB).
SLACK = MIB / 4
SEGMENT = MIB / 2  # of its own, before anything is sent
FASTBOX, FASTBOXES = MIB / 8, 4 * MIB  # of a pair of few ranks; of a rank at most
# After MPI_Init a rank has some 127 KiB of pages more than are in use, which creating the team has given back. How much
# of each fastbox lies there depends on the lengths of all that is allocated before.
REUSED = MIB / 32


@pytest.fixture(scope="module", autouse=True)
def libraries_written_at_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Copies of our libraries: how many of a file's pages one fault maps depends on how the file was written.

    The same bytes as the linker has written them take up to 250 KiB more of a rank (Linux 6.18).
    """
    copies = tmp_path_factory.mktemp("libraries")
    shutil.copytree(library_directory(), copies, dirs_exist_ok=True, copy_function=shutil.copyfile)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEARFIELD_LIBDIR", str(copies))
        yield


def private_cache() -> float:
    """KiB of the second-level cache of a core; 0 where the system does not say."""
    size = Path("/sys/devices/system/cpu/cpu0/cache/index2/size")
    return float(size.read_text().strip().removesuffix("K")) if size.exists() else 0


# They rotate over twice the private cache of a core.
COPY_BUFFERS = max(2 * MIB, 2 * private_cache())


def taken(host: str, ranks: int, nearfield: bool = True, talk: tuple[str, ...] = ()) -> Bytes:
    """What ranks take, in the median of some starts."""
    return middle([measure(HOSTS[host], ranks, nearfield, talk) for _ in range(3)])


def total(parts: dict[str, float]) -> float:
    """All but page tables, which are the kernel's."""
    return parts["pss"] + parts["own"] + parts["heap"]


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_before_the_first_message_a_rank_needs_at_most_2_mib(host: str, ranks: int) -> None:
    ours, plain = taken(host, ranks), taken(host, ranks, nearfield=False)
    assert total(ours["first"]) - total(plain["first"]) <= 2 * MIB + SLACK, (ours, plain)
    assert 0 < ours["first"]["own"] <= SEGMENT, ours
    assert ours["first"]["heap"] <= 64, "the host's own allocations lie in the shared heap"


@pytest.mark.parametrize(("ranks", "bytes"), [(2, 64), (2, 16384), (6, 64)])
def test_what_talks_needs_what_its_pairs_need(ranks: int, bytes: int) -> None:
    ours = taken("mpich", ranks, talk=(str(bytes), "20"))
    grown = ours["talked"]["own"] - ours["first"]["own"]
    boxes = (ranks - 1) * (FASTBOX + 4)
    least = (ranks - 1) * (FASTBOX - REUSED)
    assert least <= grown <= boxes + (COPY_BUFFERS if bytes > 1024 else 0) + SLACK, ours


@FULL
def test_many_ranks_that_all_talk_stay_within_the_bound_of_fastboxes() -> None:
    ours = taken("mpich", 40, talk=("64", "6"))
    grown = ours["talked"]["own"] - ours["first"]["own"]
    assert 39 * (FASTBOX / 2) <= grown <= FASTBOXES + SLACK, ours
