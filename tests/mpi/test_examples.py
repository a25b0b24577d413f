"""The programs in examples give right results, with and without Nearfield."""

import math
import re

import numpy as np
import pytest

from nearfield.libraries import program as built
from tests.mpi.jobs import HOSTS, ROOT, Completed, carried, hosts, launch, python_of

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


WARM_UP = 10  # sweeps that the stencil does not count
STENCIL_FORMS = ("messages", "put", "shared")


def stencil_alone(rows: int, columns: int, sweeps: int) -> str:
    """The checksum that examples/stencil has to print, computed by numpy."""
    down, across = (
        [math.sin(math.pi * waves / (n + 1) * (i + 1)) for i in range(n)]
        for waves, n in ((1, rows), (2, columns))
    )
    field = np.ones((rows + 2, columns + 2))
    here, sides = field[1:-1, 1:-1], ((0, 1), (2, 1), (1, 0), (1, 2))
    here += np.outer(down, across)
    north, south, west, east = (field[i : i + rows, j : j + columns] for i, j in sides)
    for _ in range(sweeps):
        here[:] = here + 0.2 * ((north + south) + (west + east) - 4 * here)
    at = np.arange(rows * columns, dtype=np.uint64)
    bits = here.ravel().view(np.uint64) ^ at * np.uint64(0x9E3779B97F4A7C15)
    bits *= np.uint64(0xBF58476D1CE4E5B9)
    return f"{int(np.sum(bits ^ bits >> np.uint64(32), dtype=np.uint64)):016x}"


def launch_stencil(host: str, ranks: int, *arguments: str, nearfield: bool = True) -> Completed:
    """Runs examples/stencil."""
    program = str(built(f"nearfield-stencil-{HOSTS[host].abi}"))
    return launch(host, ranks, [program, *arguments], {"NEARFIELD_STATS": "1"}, nearfield=nearfield)


def printed_by_form(done: Completed) -> dict[str, dict[str, str]]:
    """What the stencil printed of each form."""
    forms: dict[str, dict[str, str]] = {}
    for name, value in (line.split(": ") for line in done.stdout.splitlines()):
        if name == "form":
            forms[value] = {}
        else:
            list(forms.values())[-1][name] = value
    return forms


def expect_numpys_bits(done: Completed, rows: int, columns: int, loops: int, forms: tuple[str, ...]) -> None:
    """All forms ran and gave the field that numpy computes."""
    assert done.returncode == 0 and not done.timed_out, done.text
    found = {form: figures["checksum"] for form, figures in printed_by_form(done).items()}
    assert found == dict.fromkeys(forms, stencil_alone(rows, columns, WARM_UP + loops)), done.text


@pytest.mark.parametrize("nearfield", [False, True], ids=["plain", "nearfield"])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_all_forms_of_the_stencil_have_numpys_bits(host: str, ranks: int, nearfield: bool) -> None:
    done = launch_stencil(host, ranks, "--size", "37x53", "--loops", "15", nearfield=nearfield)
    expect_numpys_bits(done, 37, 53, 15, STENCIL_FORMS)
    if nearfield and ranks > 1:  # a neighbour at least, in two forms
        sent = re.search(r"messages +(\d+) sent", done.stderr)
        assert sent and int(sent[1]) >= 2 * (WARM_UP + 15), done.stderr


@pytest.mark.parametrize(
    ("ranks", "grid", "rows", "columns"),
    [
        (2, "1x2", 5, 4),
        (3, "1x3", 4, 7),
        (3, "3x1", 7, 3),
        (4, "0x4", 3, 9),
        (6, "2x3", 2, 3),
        (6, "3x2", 1024, 5),
        (4, "4x0", 4, 1),
    ],
)
def test_blocks_of_the_stencil_have_any_shape(ranks: int, grid: str, rows: int, columns: int) -> None:
    done = launch_stencil("mpich", ranks, "--grid", grid, "--size", f"{rows}x{columns}", "--loops", "4")
    expect_numpys_bits(done, rows, columns, 4, STENCIL_FORMS)


@pytest.mark.parametrize("form", STENCIL_FORMS)
def test_the_stencil_says_how_long_it_took(form: str) -> None:
    done = launch_stencil("mpich", 2, "--form", form, "--size", "200", "--loops", "100")
    expect_numpys_bits(done, 200, 200, 100, (form,))
    figures = {
        name: float(value) for name, value in printed_by_form(done)[form].items() if name != "checksum"
    }
    assert figures["seconds"] >= figures["mpi_most"] >= figures["mpi"] > 0
    assert figures["cpu"] > 0 and figures["error"] < 1e-12


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--size", "1x3", "--grid", "3x1"), "1 x 3 cells cannot be divided among 3 ranks"),
        (("--grid", "2x2"), "cannot be divided among 3 ranks"),
        (("--form", "get"), "--form messages|put|shared"),
        (("--size", "12x"), "--size ROWS"),
        (("--loops", "0"), "--loops SWEEPS"),
        (("--loops",), "--loops SWEEPS"),
    ],
)
def test_the_stencil_refuses_what_makes_no_sense(arguments: tuple[str, ...], words: str) -> None:
    done = launch_stencil("mpich", 3, *arguments)
    assert done.returncode == 2 and done.stderr.count(words) == 1, done.text
