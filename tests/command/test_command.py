"""The nearfield command."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from nearfield import apps
from nearfield import bench as benchmarks
from nearfield import explain as explaining
from nearfield.bench import _merged, parse_sizes, run_bench
from nearfield.hosts import bound
from nearfield.job import LAUNCHERS, Job, present_job, without_nearfield
from nearfield.libraries import program
from nearfield.operations import MOVES, ON_WORDS, OPERATIONS, SYNCHRONIZES, WITHOUT_SIZE, cells_of_job
from nearfield.summary import cells_of, pairs
from tests.mpi.jobs import HOSTS, ROOT, hosts, launch, python_of

COMMAND = str(ROOT / ".venv/bin/nearfield")


def nearfield(*arguments: str, **env: str) -> subprocess.CompletedProcess:
    """Runs the command."""
    return subprocess.run(
        [COMMAND, *arguments], env={**os.environ, **env}, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_run_reaches_the_ranks(host: str) -> None:
    script = "import sys; from mpi4py import MPI; MPI.COMM_WORLD.Barrier(); sys.stdout.write(f'sum {MPI.COMM_WORLD.allreduce(1)}\\n')"
    options = HOSTS[host].options
    done = nearfield(
        "run", "--stats", "--host", host, "mpiexec", *options, "-n", "2", python_of(host), "-c", script
    )
    assert done.stdout.count("sum 2") == 2, done.stderr
    assert "barrier" in done.stderr


def test_run_starts_at_once() -> None:
    def fastest(command: list[str]) -> float:
        times = []
        for _ in range(5):
            start = time.monotonic()
            subprocess.run(command, check=True)
            times.append(time.monotonic() - start)
        return min(times)

    bare = fastest([str(ROOT / ".venv/bin/python"), "-c", "pass"])
    assert fastest([COMMAND, "run", "true"]) < bare + 0.15


def test_run_says_what_is_missing() -> None:
    done = nearfield("run", "true", NEARFIELD_LIBDIR="/nowhere")
    assert done.returncode == 2 and "make build" in done.stderr
    assert nearfield("run").returncode == 2
    assert nearfield("run", "--host", "nobody", "true").returncode == 2
    assert nearfield("run", "/nonexistent/launcher").returncode == 2


def test_info_is_valid_json_and_tells_why() -> None:
    found = json.loads(nearfield("info", "--json").stdout)
    ways = {way["name"]: way for way in found["reach"]}
    assert ways["mapped"]["works"] and ways["xpmem"]["why"]
    assert {"slots", "partitioned"} <= {row["name"] for row in found["algorithms"]["allreduce"]}
    assert "NEARFIELD_ALGORITHM" in nearfield("info").stdout


def test_the_documentation_has_the_settings_as_they_are() -> None:
    table = nearfield("info", "--settings").stdout.strip()
    assert table.count("\n") > 15
    assert table in (ROOT / "docs/settings.md").read_text()


def test_bench_writes_rows_and_a_report(tmp_path) -> None:
    rows_file, report = tmp_path / "rows.json", tmp_path / "report.html"
    arguments = ["--op", "allreduce", "--sizes", "8,64K", "--seconds", "0.1", "--buffers", "warm,used"]
    done = nearfield("bench", *arguments, "--json", str(rows_file), "--report", str(report))
    assert done.returncode == 0, done.stderr
    rows = json.loads(rows_file.read_text())
    keys = [
        "op",
        "bytes",
        "ranks",
        "host",
        "version",
        "machine",
        "mode",
        "algorithm",
        "buffers",
        "state",
        "line_ns",
        "loop",
        "heap",
        "protocol",
        "median",
        "lower",
        "upper",
        "iterations",
    ]
    for row in rows:
        assert sorted(row) == sorted(keys + ["predicted"] * (row["mode"] == "nearfield"))
    assert {row["bytes"] for row in rows} == {8, 65536} and {row["mode"] for row in rows} == {
        "plain",
        "nearfield",
    }
    assert {row["buffers"] for row in rows} == {"warm", "used"}
    assert "<svg" in report.read_text()
    assert pairs(rows)
    assert "there are no hot buffers" in nearfield("bench", "--buffers", "hot").stderr


def bench(tmp_path: Path, *arguments: str) -> tuple[list[dict], str]:
    """The rows of a benchmark of a few calls, and what was printed."""
    rows = tmp_path / "rows.json"
    done = nearfield("bench", *arguments, "--seconds", "0.005", "--json", str(rows))
    assert done.returncode == 0, done.stderr
    return json.loads(rows.read_text()), done.stdout


PATTERNS = "sendrecv,waitall,waits,anysource,testloop,halo,waitany,probe,latency,bw,bibw,ddt-indexed"
LOOKS = "test,testall,testany,iprobe"


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("operations", [PATTERNS, LOOKS, OPERATIONS])
def test_bench_measures_calls_as_programs_make_them(tmp_path: Path, operations: str, ranks: int) -> None:
    rows, shown = bench(tmp_path, "--op", operations, "--sizes", "8,4K,20000", "--ranks", str(ranks))
    names = operations.split(",")
    for name in names:
        for mode in ("plain", "nearfield"):
            found = [row for row in rows if (row["op"], row["mode"]) == (name, mode)]
            assert {row["bytes"] for row in found} == ({0} if name in WITHOUT_SIZE else {8, 4096, 20000})
            assert all(0 < row["lower"] <= row["median"] <= row["upper"] < 1e6 for row in found), found
            assert {row["buffers"] for row in found} == {"used"}
        assert f"\n{name}, {ranks} ranks, used buffers" in shown
    assert "geometric mean" in shown and rows[0]["machine"] in shown.splitlines()[0]


def test_the_command_knows_every_operation() -> None:
    assert set(OPERATIONS.split(",")) == set(json.loads(nearfield("info", "--json").stdout)["algorithms"])


@pytest.mark.parametrize("ranks", [2, 3])
def test_the_floor_gives_the_hosts_results(tmp_path: Path, ranks: int) -> None:
    # The worker ends the job where they differ. 20000 is no whole number of chunks, 4 bytes are an int to add.
    operations = (
        OPERATIONS.replace(",reduce_scatter,", ",").removesuffix(",scan,exscan")
        + ",latency,bibw,sendrecv,halo"
    )
    rows, shown = bench(tmp_path, "--op", operations, "--sizes", "4,20000", "--ranks", str(ranks), "--floor")
    bodies = {row["algorithm"].split("-")[0] for row in rows if row["mode"] == "floor"}
    assert {(row["op"], row["bytes"]) for row in rows if row["mode"] == "floor"} == {
        (row["op"], row["bytes"]) for row in rows
    }
    assert bodies <= {"flags", "direct", "pushed", "copied", "in", "streamed"} and "x floor" in shown


@pytest.mark.parametrize(
    ("host", "operations", "window", "target", "size"),
    [
        ("mpich", MOVES, "create", "own", 20000),
        ("impi", MOVES + ON_WORDS, "allocate", "one", 8),
        ("openmpi", SYNCHRONIZES, "shared", "apart", 20000),
        ("mpich", ON_WORDS + ("fence", "lock"), "dynamic", "own", 8),
    ],
)
def test_bench_measures_windows(
    tmp_path: Path, host: str, operations: tuple[str, ...], window: str, target: str, size: int
) -> None:
    # The worker ends the job where the windows of host, Nearfield and floor hold different bytes.
    report, plot = tmp_path / "report.html", tmp_path / "plot.svg"
    files = ("--report", str(report), "--svg", str(plot))
    where = ("--hosts", host, "--window", window, "--target", target)
    sizes = ("--sizes", str(size), "--floor")
    rows, shown = bench(tmp_path, "--op", ",".join(operations), *where, *sizes, *files)
    for op in operations:
        lengths = {8} if op in ON_WORDS else {size} if op in MOVES else {0, size}
        for mode in ("plain", "nearfield", "floor"):
            found = [row for row in rows if (row["op"], row["mode"]) == (op, mode)]
            assert {row["bytes"] for row in found} == lengths and len(found) >= len(lengths), (op, mode)
            assert all(0 < row["lower"] <= row["median"] <= row["upper"] < 1e6 for row in found), found
            assert {(row["window"], row["target"]) for row in found} == {(window, target)}
        name = f"{op}, window {window}, target {target}"
        assert f"\n{name}, 2 ranks" in shown and f">{name}</td>" in report.read_text()
        assert name in plot.read_text()


def test_cells_without_data_are_measured_once() -> None:
    assert cells_of_job("fence", [8, 20000], ["used", "warm"]) == 5
    assert cells_of_job("fetch-and-op", [8, 20000], ["used", "warm"]) == 1


def test_windows_of_more_ranks_than_cpus_are_measured(tmp_path: Path) -> None:
    ranks = 4 * len(os.sched_getaffinity(0))
    arguments = ("--op", "fence,fetch-and-op", "--sizes", "8", "--ranks", str(ranks), "--target", "one")
    rows, _ = bench(tmp_path, *arguments, "--floor")
    assert {(row["op"], row["bytes"], row["mode"]) for row in rows} == {
        (op, size, mode)
        for op, size in (("fence", 0), ("fence", 8), ("fetch-and-op", 8))
        for mode in ("plain", "nearfield", "floor")
    }


def test_bench_says_what_it_does_not_measure_of_windows() -> None:
    for arguments, word in (
        (("--window", "own"), "there are no own windows; there are create, allocate, shared, dynamic"),
        (("--target", "all"), "there are no all targets"),
        (("--buffers", "cold"), "not cold"),
        (("--short", "20"), "in the long run"),
    ):
        done = nearfield("bench", "--op", "put", *arguments)
        assert done.returncode == 2 and word in " ".join(done.stderr.split()), done.stderr


def test_jobs_that_hang_are_reported_and_the_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmarks, "SILENCE", 0.01)  # nothing starts so fast
    failures: list[str] = []
    operations, mine = ["put", "allreduce", "get"], 12344  # bytes
    rows = run_bench(operations, [2], [mine], ["mpich"], ["warm"], 0.005, failures=failures)
    assert {row["op"] for row in rows} == {"allreduce"}
    for op, why in zip(("put", "get"), failures, strict=True):
        assert why.startswith(
            f"{op}, 2 ranks, mpich, window allocate, target own, after no row: {op} on 2 ranks"
        )
        assert "did not end within" in why
    with pytest.raises(ValueError, match="put, 2 ranks, mpich"):
        run_bench(["put"], [2], [mine], ["mpich"], ["warm"], 0.005)

    def left() -> list[str]:
        texts = [_text(path) for path in Path("/proc").glob("[0-9]*/cmdline")]
        return [text for text in texts if str(mine) in text.split("\0")]

    until = time.monotonic() + 10  # what was killed takes a moment to end
    while left() and time.monotonic() < until:
        time.sleep(0.05)
    assert not left()


def test_short_loops_begin_afresh(tmp_path: Path) -> None:
    rows, shown = bench(tmp_path, "--op", "allreduce,latency", "--sizes", "8,4K", "--short", "20")
    assert {row["loop"] for row in rows} == {20} and "loops of 20 calls" in shown
    for op in ("allreduce", "latency"):
        for mode in ("plain", "nearfield"):
            found = [row for row in rows if (row["op"], row["mode"]) == (op, mode)]
            assert {row["bytes"] for row in found} == {8, 4096}
            assert all(row["median"] > 0 and row["iterations"] % 20 == 0 for row in found)


APP_FIGURES = ("seconds", "cpu", "mpi", "mpi_most")


def expect_cells(rows: list[dict], cells: set[tuple[str, str]], about: dict) -> None:
    """Each cell, a form and a host, was measured both ways and is what `about` says."""
    for mode in ("plain", "nearfield"):
        found = [row for row in rows if row["mode"] == mode]
        assert {(row["form"], row["host"]) for row in found} == cells and len(found) == len(cells)
    for row in rows:
        assert row.items() >= about.items() and all(row[key] > 0 for key in APP_FIGURES), row
        for key in (*APP_FIGURES, "share"):
            assert row[f"{key}_lower"] <= row[key] <= row[f"{key}_upper"], row
        assert 0 < row["share"] < 1 and row["calls"] > 0, row
        assert row["bytes"] > 0 or row["form"] == "shared", row  # whose lines are read where they lie
        assert row["pinned"] == (row["nodes"] == 1 and row["ranks"] <= len(os.sched_getaffinity(0)))


def test_bench_runs_applications(tmp_path: Path) -> None:
    once = ("--loops", "2", "--runs", "1")
    rows, shown = bench(tmp_path, "--app", "fft", "--points", "16", *once)
    expect_cells(rows, {("", "mpich")}, {"app": "fft", "ranks": 2, "nodes": 1, "points": 16, "loops": 2})
    assert "16^3" in shown
    arguments = ("--points", "48", "--ranks", "3", "--hosts", "mpich,openmpi", "--form", "bcast,allreduce")
    rows, shown = bench(tmp_path, "--app", "matmul", *arguments, "--panel", "9", *once)
    cells = {(form, host) for form in ("bcast", "allreduce") for host in ("mpich", "openmpi")}
    expect_cells(rows, cells, {"app": "matmul", "ranks": 3, "points": 48, "runs": 1, "heap": "shared"})
    assert "48 x 48" in shown and "allreduce" in shown
    arguments = ("--points", "30,31", "--ranks", "2,3", "--form", "put,shared")
    rows, shown = bench(tmp_path, "--app", "stencil", *arguments, *once)
    assert "31 x 31" in shown and "shared" in shown
    for points, ranks in itertools.product((30, 31), (2, 3)):
        found = [row for row in rows if (row["points"], row["ranks"]) == (points, ranks)]
        expect_cells(found, {("put", "mpich"), ("shared", "mpich")}, {"app": "stencil", "loops": 2})
    for app, points, shape in (("mesh", 4, "blocks of 4^3"), ("training", 2, "2 channels")):
        arguments = ("--points", str(points), "--ranks", "2", "--hosts", "mpich,openmpi")
        rows, shown = bench(tmp_path, "--app", app, *arguments, *once)
        expect_cells(rows, {("", "mpich"), ("", "openmpi")}, {"app": app, "points": points})
        assert shape in shown


def test_applications_have_to_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        apps,
        "_run",
        lambda cell, *_: dict.fromkeys(apps.FIGURES + apps.COUNTS, "1") | {"checksum": cell.form},
    )
    assert len(apps.compare("stencil", [2, 4], ["mpich"], forms=["put"])) == 8
    with pytest.raises(ValueError, match="the results of stencil shared 256, 2 ranks, mpich .* differ"):
        apps.compare("stencil", [2], ["mpich"], forms=["put", "shared"])


def test_results_of_training_differ_by_rounding_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def losses(of_two: str, of_four: str) -> None:
        def run(cell: apps.Cell, *_: object) -> dict[str, str]:
            loss = of_two if cell.ranks == 2 else of_four
            return dict.fromkeys(apps.FIGURES + apps.COUNTS, "1") | {"checksum": loss, "loss": loss}

        monkeypatch.setattr(apps, "_run", run)
        apps.compare("training", [2, 4], ["mpich"], [8])

    losses("2.5", "2.50001")
    for wrong in ("2.6", "nan"):
        with pytest.raises(ValueError, match="the results of training 8, 4 ranks, mpich.* differ"):
            losses("2.5", wrong)


@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_ranks_are_bound_to_a_cpu_each(host: str) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    script = "import os; print('on', *os.sched_getaffinity(0), flush=True)"
    program = bound([sys.executable, "-c", script])
    done = launch(host, len(cpus), program)
    found = sorted(int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("on"))
    assert found == cpus, done.text


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_an_application_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setattr(apps, "LIMIT", 2)
    mine = "123457"  # so many loops do not end
    with pytest.raises(ValueError, match="did not end within 2 s"):
        apps.compare("matmul", [2], [host], [600], int(mine), forms=["bcast"])
    left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if mine in _text(path).split("\0")]
    assert not left, [_text(path) for path in left]


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def test_bench_says_which_applications_there_are() -> None:
    for arguments, word in (
        (("--app", "lu"), "fft, matmul, stencil, mesh, training"),
        (("--app", "matmul", "--form", "cannon"), "allgather"),
        (("--app", "fft", "--form", "bcast"), "fft has no form bcast"),
        (("--app", "stencil", "--points", "1"), "1 x 1 cells cannot be divided among 2 ranks"),
        (("--app", "fft", "--points", "17"), "17 points do not divide"),
        (("--app", "mesh", "--points", "5"), "mesh [--size even"),
        (("--app", "matmul", "--nodes", "3"), "2 ranks are too few for 3 nodes"),
    ):
        done = nearfield("bench", *arguments)
        assert done.returncode == 2 and word in done.stderr, done.stderr


@pytest.mark.parametrize(("app", "ranks", "form"), [("matmul", 3, "allgather"), ("stencil", 4, "shared")])
def test_bench_runs_applications_over_nodes(tmp_path: Path, app: str, ranks: int, form: str) -> None:
    arguments = ("--nodes", "2", "--ranks", str(ranks), "--points", "48", "--form", form)
    arguments = ("bench", "--app", app, *arguments, "--loops", "1", "--runs", "1")
    done = nearfield(*arguments, "--json", str(tmp_path / "rows.json"))
    if "nodes cannot be made here" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())
    expect_cells(rows, {(form, "mpich")}, {"nodes": 2, "ranks": ranks})


def test_the_summary_holds_nearfield_against_the_best_host() -> None:
    def row(host: str, mode: str, median: float) -> dict:
        about = {"bytes": 8, "host": host, "mode": mode, "algorithm": "slots"}
        return about | {"median": median, "lower": median, "upper": median}

    rows = [row("a", "plain", 4.0), row("a", "nearfield", 1.0), row("a", "floor", 0.5)]
    rows += [row("b", "plain", 2.0), row("b", "nearfield", 3.0)]
    (cell,) = cells_of(rows)
    assert (cell["best"], cell["ratio"], cell["worst"], cell["floor"]) == (2.0, 1.0, 1.5, 2.0)
    assert cell["own"] == 1.5
    assert cells_of(rows[:1])[0]["ratio"] is None


def test_rows_of_several_jobs_become_one_with_quartiles() -> None:
    about = {"bytes": 8, "buffers": "warm", "mode": "plain", "state": "any", "iterations": 20}
    jobs = [[about | {"median": float(time)}] for time in (5, 1, 4, 2, 3)]
    (row,) = _merged(jobs)
    assert (row["lower"], row["median"], row["upper"], row["iterations"]) == (2.0, 3.0, 4.0, 100)


def test_sizes() -> None:
    assert parse_sizes("8:64") == [8, 16, 32, 64]
    assert parse_sizes("8,1K,4M") == [8, 1024, 4 << 20]
    with pytest.raises(ValueError):
        parse_sizes("64:8")


def test_model_predicts_for_any_machine(tmp_path: Path) -> None:
    cells = tmp_path / "cells.json"
    plot = tmp_path / "plot.svg"
    done = nearfield(
        *(
            "model",
            "allreduce,alltoall",
            "--ranks",
            "2,12,192",
            "--sizes",
            "8,64K,16M",
            "--machine",
            "epyc-2x96",
        ),
        *("--json", str(cells), "--svg", str(plot)),
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(cells.read_text())
    assert {row["ranks"] for row in rows} == {2, 12, 192}
    for row in rows:
        paid = {name: ns + row["behind"].get(name, 0) for name, ns in row["ns"].items()}
        assert paid[row["chosen"]] == min(paid.values()), row
    assert any(row["behind"] for row in rows)
    assert "<svg" in plot.read_text()
    machine = tmp_path / "slow.toml"
    machine.write_text("line = 1e6\ncpus = 64\n")
    slow = nearfield("model", "barrier", "--ranks", "2", "--sizes", "8", "--machine", str(machine))
    assert slow.stdout.split()[4] == "1e+03", slow.stdout
    unknown = nearfield("model", "allreduce", "--machine", "cray")
    assert unknown.returncode == 2 and "knl-64" in unknown.stderr
    machine.write_text("lime = 3\n")
    wrong = nearfield("model", "allreduce", "--machine", str(machine))
    assert wrong.returncode == 2 and "line" in wrong.stderr


def test_model_predicts_for_many_nodes(tmp_path: Path) -> None:
    cells, plot = tmp_path / "cells.json", tmp_path / "plot.svg"
    shape = ("--nodes", "32,64,1024", "--ranks-per-node", "96", "--machine", "epyc-2x96")
    sizes = ("--sizes", "8,64K,16M")
    done = nearfield("model", "allreduce,barrier", *shape, *sizes, "--json", str(cells), "--plot", str(plot))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("predicted, not measured; network: 1.3 us, 23.3 GB/s")
    rows = json.loads(cells.read_text())
    assert {(row["nodes"], row["ranks"]) for row in rows} == {(n, n * 96) for n in (32, 64, 1024)}
    for row in rows:
        expected = {"leader"}
        if row["op"] == "allreduce":
            expected |= {"pipelined", "in-order"} | ({"lanes"} if row["bytes"] > 8 else set())
        assert set(row["ns"]) == expected and row["ns"][row["chosen"]] == min(row["ns"].values()), row
        assert 1 <= row["chunks"] <= 16
    for size in (8, 65536, 16 << 20):  # more nodes take longer
        times = [min(row["ns"].values()) for row in rows if (row["op"], row["bytes"]) == ("allreduce", size)]
        assert times == sorted(times) and len(times) == 3
    assert "<svg" in plot.read_text() and "allreduce, 1024 x 96 ranks (model)" in plot.read_text()
    as_many_as_cpus = nearfield("model", "bcast", "--nodes", "2", "--sizes", "8", "--machine", "knl-64")
    assert as_many_as_cpus.stdout.splitlines()[1].split()[:4] == ["bcast", "2", "64", "8"]
    hosts_own = nearfield("model", "scan", "--nodes", "2", "--sizes", "8", "--svg", str(plot))
    assert hosts_own.stdout.splitlines()[1].split()[4] == "host", hosts_own.stderr


def test_a_described_network_counts(tmp_path: Path) -> None:
    def cell(text: str) -> dict:
        machine, cells = tmp_path / "cluster.toml", tmp_path / "cells.json"
        machine.write_text("cpus = 16\n" + text)
        done = nearfield(
            *("model", "allreduce", "--nodes", "16", "--sizes", "8M", "--machine", str(machine)),
            *("--json", str(cells)),
        )
        assert done.returncode == 0, done.stderr
        return json.loads(cells.read_text())[0]

    usual = cell("")  # says nothing about a network
    assert usual["network"]["byte"] == 0.085 and usual["ranks"] == 256
    # A rank alone fills a tenth of what the node bears.
    lanes = cell("net_byte = 0.85\nnet_node_byte = 0.085\n")
    assert lanes["chosen"] in ("lanes", "pipelined") and lanes["ns"]["leader"] > 2 * lanes["ns"]["lanes"]
    slow = cell("net_byte = 8\nnet_node_byte = 8\n")
    assert min(slow["ns"].values()) > 10 * min(usual["ns"].values())


def test_calibration_is_stored_where_ranks_look(tmp_path: Path) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path)}

    def calibrate() -> dict:
        done = nearfield("model", "barrier", "--ranks", "2", "--sizes", "8", "--calibrate", **env)
        assert done.returncode == 0, done.stderr
        (stored,) = tmp_path.glob("nearfield/*.toml")
        return tomllib.loads(stored.read_text())

    assert "all_memory" in calibrate()
    # What several nodes have found out stays, whatever a node finds out about itself.
    set_figures(env, "net_latency=1234", "net_node_byte=0.5")
    found = calibrate()
    assert found["net_latency"] == 1234 and found["net_node_byte"] == 0.5 and found["line"] > 0


def set_figures(env: dict[str, str], *figures: str) -> subprocess.CompletedProcess:
    """Stores figures of this machine by the program that the command uses."""
    words = [str(program("nearfield-model")), "set", *figures]
    return subprocess.run(words, env={**os.environ, **env}, capture_output=True, text=True, timeout=10)


def test_a_rank_knows_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for names in LAUNCHERS:
        for name in names[:2]:
            monkeypatch.delenv(name, raising=False)
    assert present_job() is None
    monkeypatch.setenv("PMI_RANK", "3")
    assert present_job() is None  # a launcher's, but of how many ranks?
    monkeypatch.setenv("PMI_SIZE", "1")
    assert present_job() is None
    monkeypatch.setenv("PMI_SIZE", "8")
    assert present_job() == Job(3, 8, "mpich")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    assert present_job() == Job(0, 4, "ompi")
    assert without_nearfield("/a/b.so:/x/libnearfield.so /x/libnearfield-heap.so  c.so") == "/a/b.so c.so"
    assert without_nearfield("") == ""


def test_only_figures_of_a_machine_are_stored(tmp_path: Path) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path)}
    for wrong in (
        "net_latency",
        "net_latency=",
        "latency=3",
        "net_byte=-1",
        "net_byte=inf",
        "net_byte=1s",
        "=1",
    ):
        done = set_figures(env, "line=80", wrong)
        assert done.returncode == 2 and wrong in done.stderr, done.stderr
    assert not list(tmp_path.glob("nearfield/*"))
    assert set_figures(env, "net_byte=0.5").returncode == 0


def test_run_knows_its_heaps() -> None:
    assert "either shared or off" in nearfield("run", "--heap", "huge", "true").stderr
    shown = nearfield("run", "--heap", "off", "sh", "-c", "echo $LD_PRELOAD")
    assert "libnearfield.so" in shown.stdout and "heap" not in shown.stdout
    assert "libnearfield-heap.so" in nearfield("run", "sh", "-c", "echo $LD_PRELOAD").stdout


def test_explain_names_what_would_run_and_what_the_others_cost() -> None:
    done = nearfield("explain", "alltoall", "--ranks", "8", "--bytes", "4K", "--machine", "epyc-2x96")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("alltoall of 4096 bytes on 8 ranks: ")
    assert "cheapest of those that apply" in done.stdout and "push-rotated" in done.stdout
    found = json.loads(nearfield("explain", "bcast", "--bytes", "1M", "--json").stdout)
    assert found["chosen"] in {row["name"] for row in found["rows"] if row["applies"]}
    assert nearfield("explain", "alltoal").returncode == 2


def test_explain_knows_every_operation_and_messages(capsys: pytest.CaptureFixture[str]) -> None:
    table = (ROOT / "engine/collectives/operations.def").read_text()
    operations = re.findall(r"^(OPERATION|OF_MESSAGES)\((\w+)", table, re.MULTILINE)
    assert len(operations) > 20
    for kind, op in [*operations, ("OF_MESSAGES", "message")]:
        for size in (8, 4096, 1 << 20):
            found = explaining.explain(op, 8, size, "epyc-2x96")
            chosen = next(row for row in found["rows"] if row["name"] == found["chosen"])
            assert chosen["applies"] and chosen["about"]
            assert ("made_of" in found) == (kind == "OF_MESSAGES")
            explaining.show(found)
            assert f"{size} bytes" in capsys.readouterr().out
        explaining.show_nodes(explaining.explain_nodes(op, 2, 8, 8, "epyc-2x96"))
        assert capsys.readouterr().out
    # By length: with its record, through buffers, from array to array.
    ways = [explaining.explain("message", 2, size, "epyc-2x96")["chosen"] for size in (8, 64 << 10, 64 << 20)]
    assert ways == ["record", "buffers", "direct"]
    crowded = {"NEARFIELD_PROTOCOL": "copy-buffers"}
    assert ": buffers" in nearfield("explain", "message", "--bytes", "64M", **crowded).stdout


def test_the_page_of_calls_is_what_the_tables_say(tmp_path: Path) -> None:
    def check(root: Path) -> subprocess.CompletedProcess:
        words = [sys.executable, str(root / "scripts/calls.py"), "--check"]
        return subprocess.run(words, capture_output=True, text=True)

    assert check(ROOT).returncode == 0, check(ROOT).stderr
    tables = (
        "mpi/functions.def",
        "mpi/preload/blocking.def",
        "mpi/shim/stats.cpp",
        "docs/calls.md",
        "scripts/calls.py",
    )
    for table in tables:
        (tmp_path / table).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / table, tmp_path / table)
    assert check(tmp_path).returncode == 0
    # What is new must be described, and the page be written again.
    for table, old, new, complaint in (
        ("mpi/functions.def", "F(Probe, ", "F(Probing, (int))\nF(Probe, ", "MPI_Probing"),
        ("mpi/preload/blocking.def", "F(File_open)", "F(File_open)\nF(Novel)", "MPI_Novel"),
        ("mpi/shim/stats.cpp", '"switched off"', '"switched off", "a novelty"', "a novelty"),
        ("docs/calls.md", "`Bcast`", "`Bcasts`", "run scripts/calls.py"),
    ):
        text = (tmp_path / table).read_text()
        assert old in text
        (tmp_path / table).write_text(text.replace(old, new, 1))
        done = check(tmp_path)
        assert done.returncode == 1 and complaint in done.stderr, done.stderr
        (tmp_path / table).write_text(text)


def test_explain_knows_nodes() -> None:
    arguments = ("explain", "allreduce", "--nodes", "64", "--bytes", "16M", "--machine", "epyc-2x96")
    done = nearfield(*arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "allreduce of 16777216 bytes on 64 nodes of 192 ranks: pipelined, by the model"
    )
    assert "chunks" in done.stdout and "on the network while nodes work" in done.stdout
    found = json.loads(nearfield(*arguments, "--ranks-per-node", "96", "--json").stdout)
    assert found["ranks"] == 64 * 96 and found["chosen"] == "pipelined"
    for row in found["rows"]:
        if row["name"] in ("leader", "lanes"):
            assert row["ns"] == pytest.approx(row["before"] + row["network"] + row["after"], rel=0.01)
    small = nearfield(*arguments[:-4], "--bytes", "8", "--ranks-per-node", "2").stdout
    assert " of it on the network and " in small and "network: " in small
    assert "the host carries it" in nearfield("explain", "scan", "--nodes", "2").stdout


def test_tune_writes_what_explain_and_ranks_read(tmp_path: Path) -> None:
    out = tmp_path / "tuned.toml"
    done = nearfield(
        "tune",
        *("--op", "alltoall,barrier", "--sizes", "64,64K", "--ranks", "2"),
        "--out",
        str(out),
        "--seconds",
        "0.1",
    )
    assert done.returncode == 0, done.stderr
    cells = tomllib.loads(out.read_text())["cell"]
    assert [(cell["op"], cell["ranks"], cell["bytes"]) for cell in cells] == [
        ("alltoall", 2, 64),
        ("alltoall", 2, 65536),
    ]
    assert all(cell["us"] > 0 and cell["staged"] in ("slots", "rounds") for cell in cells)
    found = nearfield("explain", "alltoall", "--bytes", "50K", NEARFIELD_TUNED=str(out)).stdout
    assert f"NEARFIELD_CHOOSE=file takes {cells[1]['algorithm']}" in found


def test_orders_are_simulated(tmp_path: Path) -> None:
    rows, plot = tmp_path / "rows.json", tmp_path / "plot.svg"
    arguments = (
        "model",
        "alltoall",
        "--simulate",
        "--ranks",
        "16",
        "--sizes",
        "8,1K",
        "--machine",
        "epyc-2x96",
    )
    done = nearfield(*arguments, "--json", str(rows), "--svg", str(plot))
    assert done.returncode == 0, done.stderr
    assert "Simulated" in plot.read_text()
    found = {row["order"]: row for row in json.loads(rows.read_text()) if row["bytes"] == 1024}
    assert all(row["simulated"] for row in found.values())
    # What another group has written has to come from there, once; at one member after the other it takes longest.
    assert found["pull-rotated"]["far"] == 2 * 8 * 8 * 1024 // 64
    assert found["pull-linear"]["ns"] > found["pull-rotated"]["ns"]
    too_many = nearfield("model", "alltoall", "--simulate", "--ranks", "512", "--machine", "epyc-2x96")
    assert too_many.returncode == 2 and "192" in too_many.stderr
