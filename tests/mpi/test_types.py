"""Every predefined type with every operator, and wrong arguments, as on the plain host.

Debian's MPICH 4.0.2 is left out: it aborts itself on some types that logical operators are not defined on. The MPICH of
PyPI checks few arguments (it aborts on a negative count), so Debian's stands for it in the second test.
"""

from pathlib import Path

import pytest

from tests.mpi.jobs import EVERYTHING, UNKNOWN, WHILE_DEFERRED, carried, hosts
from tests.mpi.scenario_jobs import good_scenarios


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "debian-openmpi"))
def test_every_type_with_every_operator(host: str, ranks: int) -> None:
    # Each call is made by the host too, for its result; operators are not defined on all types.
    reasons = ("switched off", "argument" if ranks == 1 else "datatype")
    rows = [f"{name}: {why}" for name in ("allreduce", "reduce", "reduce_scatter_block") for why in reasons]
    (done,) = good_scenarios(host, ranks, "types", served=EVERYTHING.but(*rows))
    assert carried(done.job, "allreduce") > 200


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("host", hosts("debian-mpich", "openmpi"))
def test_wrong_arguments_give_the_hosts_errors(host: str, ranks: int) -> None:
    (plain,) = good_scenarios(host, ranks, "errors", nearfield=False)
    (ours,) = good_scenarios(host, ranks, "errors", timeout=20, served=UNKNOWN)
    assert any("works afterwards" in line for line in plain.lines), plain.job.text
    assert ours.lines == plain.lines


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "debian-mpich", "debian-openmpi"))
def test_files_and_absolute_addresses(host: str, ranks: int, tmp_path: Path) -> None:
    served = EVERYTHING.but(WHILE_DEFERRED)
    (done,) = good_scenarios(host, ranks, f"files {tmp_path}/file", served=served)
    assert carried(done.job, "bcast")


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_a_type_has_to_be_committed(host: str) -> None:
    good_scenarios(host, 2, "deferred_not_committed", served=UNKNOWN)
