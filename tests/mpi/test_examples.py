"""The programs in examples give right results, with and without Nearfield."""

import pytest

from tests.mpi.jobs import ROOT, carried, hosts, launch, python_of

WORKER = ROOT / "tests/mpi/worker_matmul.py"


@pytest.mark.parametrize("nearfield", [False, True], ids=["plain", "nearfield"])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_all_forms_of_the_product_are_numpys(host: str, ranks: int, nearfield: bool) -> None:
    program = [python_of(host), "-m", "mpi4py", str(WORKER)]  # which ends the job at an exception
    done = launch(host, ranks, program, {"NEARFIELD_STATS": "1"}, nearfield=nearfield)
    assert done.stdout == "good\n" and done.returncode == 0, done.text
    if nearfield and ranks > 1:
        for operation in ("bcast", "allgather", "allreduce"):
            assert carried(done, operation), done.stderr


@pytest.mark.parametrize("form", ["bcast", "allgather", "allreduce"])
def test_the_product_says_how_long_it_took(form: str) -> None:
    program = [python_of("mpich"), str(ROOT / "examples/matmul.py"), "--form", form]
    done = launch("mpich", 3, [*program, "--size", "50", "--loops", "2"])
    assert done.returncode == 0, done.text
    printed = dict(line.split(": ") for line in done.stdout.splitlines())
    seconds, most, mean = (float(printed[name]) for name in ("seconds", "mpi_most", "mpi"))
    assert float(printed["error"]) == 0 and seconds >= most >= mean > 0
    none = launch("mpich", 3, [*program, "--form", "allreduce", "--layers", "2"])
    assert none.returncode and "3 ranks are not 2 equal layers" in none.text
