"""The programs in examples give right results, with and without Nearfield."""

import functools
import math

import numpy as np
import pytest

from nearfield.libraries import program as built
from tests.mpi.jobs import AT_ONCE, HOSTS, ROOT, Completed, carried, hosts, launch, python_of, sent
from tests.selection import per_change

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


@pytest.mark.parametrize("form", per_change(["bcast", "allgather", "allreduce"]))
def test_the_product_says_how_long_it_took(form: str) -> None:
    done = launch("mpich", 3, [*MATMUL, "--form", form, "--size", "50", "--loops", "2"])
    assert done.returncode == 0, done.text
    printed = dict(line.split(": ") for line in done.stdout.splitlines())
    seconds, most, mean = (float(printed[name]) for name in ("seconds", "mpi_most", "mpi"))
    assert float(printed["error"]) == 0 and seconds >= most >= mean > 0


def test_the_product_needs_equal_layers() -> None:
    none = launch("mpich", 3, [*MATMUL, "--form", "allreduce", "--layers", "2"])
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


def launch_stencil(host: str, ranks: int, *arguments: str) -> Completed:
    """Runs examples/stencil."""
    program = str(built(f"nearfield-stencil-{HOSTS[host].abi}"))
    return launch(host, ranks, [program, *arguments], statistics=True)


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


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_all_forms_of_the_stencil_have_numpys_bits(host: str, ranks: int) -> None:
    done = launch_stencil(host, ranks, "--size", "37x53", "--loops", "15")
    expect_numpys_bits(done, 37, 53, 15, STENCIL_FORMS)
    if ranks > 1:  # a neighbour at least, in two forms
        assert sent(done) >= 2 * (WARM_UP + 15), done.statistics


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


@pytest.mark.parametrize("forms", [STENCIL_FORMS, ("put",)], ids=["all", "put"])
def test_the_stencil_says_how_long_it_took(forms: tuple[str, ...]) -> None:
    only = ("--form", *forms) if len(forms) == 1 else ()
    done = launch_stencil("mpich", 2, *only, "--size", "200", "--loops", "100")
    expect_numpys_bits(done, 200, 200, 100, forms)
    for printed in printed_by_form(done).values():
        figures = {name: float(value) for name, value in printed.items() if name != "checksum"}
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


MESH_SIZE, MESH_LOOPS, MESH_WARM_UP = 4, 5, 3
COLD, HOT = 0.125, 1.0


def launch_mesh(host: str, ranks: int, *arguments: str, nearfield: bool = True) -> Completed:
    """Runs examples/mesh."""
    program = str(built(f"nearfield-mesh-{HOSTS[host].abi}"))
    sizes = ("--size", str(MESH_SIZE), "--loops", str(MESH_LOOPS))
    return launch(host, ranks, [program, *sizes, *arguments], nearfield=nearfield, statistics=True)


def printed_by(done: Completed) -> dict[str, str]:
    """What an example printed, by name."""
    assert done.returncode == 0 and not done.timed_out, done.text
    return dict(line.split(": ") for line in done.stdout.splitlines())


def ball(step: int) -> np.ndarray:
    """Which cells of the mesh without levels the ball heats."""
    squares = []
    for start, speed in ((0.25, 0.013), (0.35, 0.009), (0.55, 0.005)):
        centre = start + step * speed
        centre -= math.floor(centre)
        places = [0.5 * (block + (c + 0.5) / MESH_SIZE) for block in range(2) for c in range(MESH_SIZE)]
        apart = np.abs(centre - np.array(places))
        squares.append(np.where(apart < 0.5, apart, 1 - apart) ** 2)
    x, y, z = squares
    return x[:, None, None] + y[:, None] + z < 0.15 * 0.15


def unrefined_alone(variables: int) -> str:
    """The checksum that examples/mesh has to print of its first level alone, computed by numpy."""
    n = MESH_SIZE
    fields = [np.where(ball(0), HOT, COLD) for _ in range(variables)]
    heat = [0] * variables
    for step in range(MESH_WARM_UP + MESH_LOOPS):
        for v in range(variables):
            fields[v][ball(step)] = HOT
        for _ in range(5):
            for v, c in enumerate(fields):
                around = [np.roll(c, 1, axis) + np.roll(c, -1, axis) for axis in range(3)]
                spread = c + 0.15 / (1 + v % 4) * ((around[0] + around[1]) + around[2] - 6 * c)
                lost = 0.25 * heat[v] / ((2 * n) ** 3 * 2.0**20)
                fields[v] = spread - lost * (spread - COLD)
                heat[v] = sum(
                    int(np.rint(sum_in_order(sum_in_order(block.reshape(-1, n))) * 2.0**20))
                    for block in blocks_of(fields[v])
                )
    cells = np.array([blocks_of(field) for field in fields]).swapaxes(0, 1).ravel()
    at = np.arange(cells.size, dtype=np.uint64)
    bits = (cells.view(np.uint64) ^ at * np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
    return f"{int(np.sum(bits ^ bits >> np.uint64(32), dtype=np.uint64)):016x}"


def blocks_of(field: np.ndarray) -> list[np.ndarray]:
    """The eight blocks, along the curve."""
    n = MESH_SIZE
    starts = [(x, y, z) for x in (0, n) for y in (0, n) for z in (0, n)]
    return [field[x : x + n, y : y + n, z : z + n] for x, y, z in starts]


def sum_in_order(values: np.ndarray) -> np.ndarray:
    """The sum along the first axis, one after the other."""
    return functools.reduce(np.add, values, np.zeros(values.shape[1:]))


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_a_mesh_without_refinement_has_numpys_bits(ranks: int) -> None:
    printed = printed_by(launch_mesh("mpich", ranks, "--levels", "0", "--variables", "5"))
    assert printed["checksum"] == unrefined_alone(5) and printed["blocks"] == "8"


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


def test_the_mesh_says_how_long_it_took() -> None:
    printed = printed_by(launch_mesh("mpich", 2, "--levels", "2", "--variables", "3"))
    figures = {name: float(value) for name, value in printed.items() if name != "checksum"}
    assert figures["seconds"] >= figures["mpi_most"] >= figures["mpi"] > 0 and figures["cpu"] > 0
    # Ghost cells of a whole face, or a quarter of that, are the most that is sent.
    assert figures["calls"] > 100 and figures["bytes"] < figures["calls"] * 3 * MESH_SIZE**2 * 8


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


def test_training_says_how_long_it_took() -> None:
    figures = printed_by(launch_training("mpich", 2))
    seconds, most, mean = (float(figures[name]) for name in ("seconds", "mpi_most", "mpi"))
    assert seconds >= most >= mean > 0 and float(figures["cpu"]) > 0
    assert float(figures["calls"]) == 2 * 2 * 9 and float(figures["bytes"]) > 8 * (64 * 3) ** 2 * 2
    none = launch_training("mpich", 2, "--batch", "1")
    assert none.returncode and "a batch of 1 has no image for some of 2 ranks" in none.text


def test_gradients_of_the_network_are_those_of_its_loss() -> None:
    done = launch("mpich", 1, [python_of("mpich"), str(ROOT / "tests/mpi/worker_training.py")])
    assert done.stdout == "good\n" and done.returncode == 0, done.text
