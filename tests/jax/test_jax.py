"""JAX's collectives through MPItrampoline, where a Python here has JAX (NEARFIELD_JAX_PYTHON). The job itself checks all values."""

from pathlib import Path

import pytest

from bench.jax_sums import python_with_jax, run_job, wrapper_for
from nearfield.hosts import find_hosts

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(python_with_jax() is None, reason="no Python here has JAX"),
]


@pytest.mark.parametrize("ranks", [2, 5])
@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_collectives_of_jax_are_served(name: str, ranks: int, tmp_path: Path) -> None:
    host, python = find_hosts()[name], python_with_jax()
    wrapper = wrapper_for(host, python, tmp_path)
    assert [row["bytes"] for row in run_job(host, python, wrapper, "nearfield", ranks, [4096])] == [4096]
