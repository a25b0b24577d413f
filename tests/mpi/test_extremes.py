"""Data that counts and descriptions hardly hold: calls of many gibibytes, distributed arrays, types of millions of blocks."""

import pytest

from tests.mpi.jobs import carried, compile_c, hosts, launch

STATS = {"NEARFIELD_STATS": "1", "NEARFIELD_STALL_SECONDS": "20"}


@pytest.mark.parametrize(
    ("ranks", "call", "block"),
    [
        (2, "message", 5 << 30),
        (2, "gather", 1 << 30),
        (2, "scatter", 1 << 30),
        (3, "alltoall", 1431655766),  # three of them are 2^32 and 2 bytes
        (3, "allgather-in-place", 1431655766),
    ],
)
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_products_of_count_and_ranks_have_64_bits(host: str, ranks: int, call: str, block: int) -> None:
    job = launch(host, ranks, [compile_c(host, "huge.c"), call, str(block)], env=STATS, timeout=120)
    assert not job.timed_out and "good" in job.stdout, job.text[-3000:]
    assert call == "message" or carried(job, call.split("-")[0]) == 1, job.text[-3000:]
    assert " 0 to the host" in job.stderr or call != "message", job.text[-3000:]


@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "debian-mpich", "debian-openmpi"))
def test_distributed_arrays_lie_where_the_host_says(host: str) -> None:
    job = launch(host, 2, [compile_c(host, "darrays.c"), "400"], env=STATS, timeout=60)
    assert not job.timed_out and "400 arrays, 0 wrong" in job.stdout, job.text[-3000:]
    assert " 0 to the host" in job.stderr, job.text[-3000:]


@pytest.mark.parametrize("heap", ["shared", "off"])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_types_of_millions_of_blocks_are_packed(host: str, heap: str) -> None:
    env = STATS | {"NEARFIELD_HEAP": heap}
    job = launch(host, 2, [compile_c(host, "undescribed.c"), "1500000"], env=env, timeout=100)
    assert not job.timed_out and "\n0 wrong" in "\n" + job.stdout, job.text[-3000:]
    assert " 0 to the host" in job.stderr and carried(job, "bcast") == 1, job.text[-3000:]
