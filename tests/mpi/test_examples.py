"""The programs in examples give right results, with and without Nearfield."""

import functools

import numpy as np
import pytest

from nearfield.libraries import program as built
from tests.mpi.jobs import AT_ONCE, HOSTS, ROOT, Completed, carried, hosts, launch, python_of, sent

WORKER = ROOT / "tests/mpi/worker_matmul.py"


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_all_forms_of_the_product_are_numpys(host: str, ranks: int) -> None:
    program = [python_of(host), "-m", "mpi4py", str(WORKER)]  # which ends the job at an exception
    done = launch(host, ranks, program, env=AT_ONCE, statistics=True)
    assert done.stdout == "good\n" and done.returncode == 0, done.text
    if ranks > 1:
        for operation in ("bcast", "allgather", "allreduce"):
            assert carried(done, operation), done.stderr


MATMUL = [python_of("mpich"), str(ROOT / "examples/matmul.py")]


def test_the_product_needs_equal_layers() -> None:
    none = launch("mpich", 3, [*MATMUL, "--form", "allreduce", "--layers", "2"])
    assert none.returncode and "3 ranks are not 2 equal layers" in none.text


WARM_UP = 10  # sweeps that the stencil does not count
STENCIL_FORMS = ("messages", "put", "shared")


def launch_stencil(host: str, ranks: int, *arguments: str, nearfield: bool = True) -> Completed:
    """Runs examples/stencil."""
    program = str(built(f"nearfield-stencil-{HOSTS[host].abi}"))
    return launch(host, ranks, [program, *arguments], nearfield=nearfield, statistics=True)


def printed_by_form(done: Completed) -> dict[str, dict[str, str]]:
    """What the stencil printed of each form."""
    forms: dict[str, dict[str, str]] = {}
    for name, value in (line.split(": ") for line in done.stdout.splitlines()):
        if name == "form":
            forms[value] = {}
        else:
            list(forms.values())[-1][name] = value
    return forms


@functools.cache
def stencil_of_one_rank(size: str, loops: str) -> str:
    """The checksum where nothing is sent."""
    done = launch_stencil("mpich", 1, "--size", size, "--loops", loops, nearfield=False)
    (checksum,) = {figures["checksum"] for figures in printed_by_form(done).values()}
    return checksum


def expect_its_bits(done: Completed, size: str, loops: str) -> None:
    """All forms ran and gave the field of one rank."""
    assert done.returncode == 0 and not done.timed_out, done.text
    found = {form: figures["checksum"] for form, figures in printed_by_form(done).items()}
    assert found == dict.fromkeys(STENCIL_FORMS, stencil_of_one_rank(size, loops)), done.text


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_all_forms_of_the_stencil_have_the_same_bits_on_any_ranks(host: str, ranks: int) -> None:
    done = launch_stencil(host, ranks, "--size", "37x53", "--loops", "15")
    expect_its_bits(done, "37x53", "15")
    assert sent(done) >= 2 * (WARM_UP + 15), done.statistics  # a neighbour at least, in two forms


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
    expect_its_bits(done, f"{rows}x{columns}", "4")


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


MESH_SIZE, MESH_LOOPS, MESH_WARM_UP = 4, 5, 3


def launch_mesh(host: str, ranks: int, *arguments: str, nearfield: bool = True) -> Completed:
    """Runs examples/mesh."""
    program = str(built(f"nearfield-mesh-{HOSTS[host].abi}"))
    sizes = ("--size", str(MESH_SIZE), "--loops", str(MESH_LOOPS))
    return launch(host, ranks, [program, *sizes, *arguments], nearfield=nearfield, statistics=True)


def printed_by(done: Completed) -> dict[str, str]:
    """What an example printed, by name."""
    assert done.returncode == 0 and not done.timed_out, done.text
    return dict(line.split(": ") for line in done.stdout.splitlines())


@functools.cache
def mesh_of_one_rank() -> tuple[str, str]:
    """Checksum and number of blocks of the refined mesh, where nothing is sent."""
    printed = printed_by(launch_mesh("mpich", 1, nearfield=False))
    return printed["checksum"], printed["blocks"]


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 7])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_the_mesh_has_the_same_bits_on_any_ranks(host: str, ranks: int) -> None:
    done = launch_mesh(host, ranks)
    printed = printed_by(done)
    assert (printed["checksum"], printed["blocks"]) == mesh_of_one_rank(), done.text
    assert 8 < int(printed["blocks"]) < 8**4 and float(printed["error"]) == 0
    assert sent(done) >= 100 * MESH_LOOPS, done.statistics
    assert carried(done, "allreduce") >= 5 * MESH_LOOPS and carried(done, "allgatherv") >= MESH_LOOPS


@pytest.mark.parametrize("arguments", [("--size", "5"), ("--size", "0"), ("--levels",), ("--ranks", "2")])
def test_the_mesh_refuses_what_makes_no_sense(arguments: tuple[str, ...]) -> None:
    done = launch("mpich", 2, [str(built("nearfield-mesh-mpich")), *arguments])
    assert done.returncode == 2 and done.stderr.count("mesh [--size even") == 1, done.text


def launch_training(host: str, ranks: int, *arguments: str, nearfield: bool = True) -> Completed:
    """Runs examples/training.py."""
    program = [python_of(host), str(ROOT / "examples/training.py")]
    sizes = ("--size", "3", "--batch", "14", "--loops", "8")
    return launch(host, ranks, [*program, *sizes, *arguments], nearfield=nearfield, statistics=True)


def losses_of(done: Completed) -> list[float]:
    """The loss of each step."""
    return [float(value) for name, value in printed_by(done).items() if name.startswith("loss of step")]


@functools.cache
def losses_of_one_rank() -> list[float]:
    """Where nothing is summed by MPI."""
    return losses_of(launch_training("mpich", 1, nearfield=False))


@pytest.mark.parametrize("ranks", [2, 3, 4, 5])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_training_learns_the_same_on_any_ranks(host: str, ranks: int) -> None:
    done = launch_training(host, ranks)
    losses = losses_of(done)
    np.testing.assert_allclose(losses, losses_of_one_rank(), rtol=1e-5)
    assert len(losses) == 10 and losses[-1] < 0.9 * losses[0]
    assert float(printed_by(done)["error"]) == 0
    assert carried(done, "allreduce") >= 9 * 10, done.stderr


def test_two_ranks_train_to_the_same_bits_with_and_without_nearfield() -> None:
    plain, ours = (printed_by(launch_training("mpich", 2, nearfield=which)) for which in (False, True))
    assert plain["checksum"] == ours["checksum"]  # a sum of two does not depend on their order
