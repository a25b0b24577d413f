"""`nearfield bench`: what it measures, of operations and windows, and what it says."""

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nearfield import bench as benchmarks
from nearfield.bench import run_bench
from nearfield.beside import KINDS, Beside
from nearfield.hosts import bound
from nearfield.libraries import program
from nearfield.machine import text_of
from nearfield.operations import MOVES, ON_WORDS, OPERATIONS, SYNCHRONIZES, WITHOUT_SIZE
from nearfield.plots import plot, write_report
from nearfield.states import rows_of_blocks
from nearfield.summary import cells_of, pairs, show_summary
from tests.command.calling import nearfield
from tests.mpi.jobs import HOSTS, ROOT, UNKNOWN, descendants, hosts, launch


def of_one_job(host: str, ranks: int, operations: list[str], sizes: list[int], *words: str) -> list[dict]:
    """What the worker measures of several operations, a few calls each; it ends the job where results differ."""
    worker = [str(program(f"nearfield-bench-{HOSTS[host].abi}")), ",".join(operations)]
    lengths = ",".join(map(str, sizes))
    # Half of it is the plain host's.
    words = [*worker, lengths, "used", "0.005", "", ",".join(words)]
    job = launch(host, ranks, words, timeout=400, served=UNKNOWN)
    assert job.returncode == 0 and not job.timed_out, job.text
    about = {"host": host, "version": "5", "machine": "some machine", "heap": "shared", "protocol": "auto"}
    return rows_of_blocks(
        [about | json.loads(line) for line in job.stdout.splitlines() if line.startswith("{")]
    )


BODIES = {"flags", "direct", "pushed", "copied", "in", "streamed"}
WITH_FLOOR = (
    OPERATIONS.replace(",reduce_scatter,", ",").removesuffix(",scan,exscan") + ",latency,bibw,sendrecv,halo"
)
COLLECTIVES = "reduce_scatter,scan,exscan"
PATTERNS = "waitall,waits,anysource,testloop,waitany,probe,bw,ddt-indexed"
LOOKS = "test,testall,testany,iprobe"


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize(
    ("names", "words"),
    [(WITH_FLOOR, ["floor"]), (f"{COLLECTIVES},{PATTERNS},{LOOKS}", [])],
    ids=["floor", "without"],
)
def test_calls_are_measured_as_programs_make_them(
    names: str, words: list[str], ranks: int, capsys: pytest.CaptureFixture[str]
) -> None:
    operations, sizes = names.split(","), [4, 20000]  # an int to add, and no whole number of chunks
    rows = of_one_job("mpich", ranks, operations, sizes, *words)
    show_summary(rows)
    shown = capsys.readouterr().out
    for name in operations:
        for mode in ("plain", "nearfield", *words):
            found = [row for row in rows if (row["op"], row["mode"]) == (name, mode)]
            measured, asked = {row["bytes"] for row in found}, {0} if name in WITHOUT_SIZE else set(sizes)
            # Bare code has no row where the machine's state changes before all of its forms have been tried.
            assert measured == asked or (mode == "floor" and measured and measured < asked), (name, mode)
            assert all(0 < row["lower"] <= row["median"] <= row["upper"] < 1e6 for row in found), found
            assert {row["buffers"] for row in found} == {"used"}
        assert f"\n{name}, {ranks} ranks, used buffers" in shown
    assert {row["algorithm"].split("-")[0] for row in rows if row["mode"] == "floor"} <= BODIES
    assert "geometric mean" in shown and "some machine" in shown.splitlines()[0]
    assert ("x floor" in shown) == ("floor" in words)


@pytest.mark.parametrize(
    ("host", "operations", "window", "target", "size"),
    [
        ("mpich", MOVES, "create", "own", 20000),
        ("openmpi", SYNCHRONIZES + ON_WORDS, "dynamic", "one", 8),
    ],
)
def test_windows_are_measured(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    host: str,
    operations: tuple[str, ...],
    window: str,
    target: str,
    size: int,
) -> None:
    where = (f"window={window}", f"target={target}")
    # Of each operation the sizes that the command asks for.
    alike = itertools.groupby(operations, lambda op: benchmarks.sizes_of(op, [size]))
    rows = [row for sizes, ops in alike for row in of_one_job(host, 2, list(ops), sizes, "floor", *where)]
    report = tmp_path / "report.html"
    write_report(rows, report)
    show_summary(rows)
    shown, drawn, page = capsys.readouterr().out, plot(pairs(rows)), report.read_text()
    for op in operations:
        lengths = {8} if op in ON_WORDS else {size} if op in MOVES else {0, size}
        for mode in ("plain", "nearfield", "floor"):
            found = [row for row in rows if (row["op"], row["mode"]) == (op, mode)]
            assert {row["bytes"] for row in found} == lengths and len(found) >= len(lengths), (op, mode)
            assert all(0 < row["lower"] <= row["median"] <= row["upper"] < 1e6 for row in found), found
            assert {(row["window"], row["target"]) for row in found} == {(window, target)}
        name = f"{op}, window {window}, target {target}"
        assert f"\n{name}, 2 ranks" in shown and f">{name}</td>" in page and name in drawn


def bench(tmp_path: Path, *arguments: str) -> tuple[list[dict], str]:
    """The rows of a benchmark of a few calls by the command, and what was printed."""
    rows = tmp_path / "rows.json"
    done = nearfield("bench", *arguments, "--seconds", "0.005", "--json", str(rows))
    assert done.returncode == 0, done.stderr
    return json.loads(rows.read_text()), done.stdout


def test_the_command_writes_rows_a_report_and_a_plot(tmp_path: Path) -> None:
    report, drawn = tmp_path / "report.html", tmp_path / "plot.svg"
    arguments = ["--op", "allreduce,put", "--sizes", "8,64K", "--buffers", "warm,used", "--floor"]
    arguments += ["--window", "dynamic", "--target", "apart", "--report", str(report), "--svg", str(drawn)]
    rows, shown = bench(tmp_path, *arguments)
    for op in ("allreduce", "put"):
        found = [row for row in rows if row["op"] == op]
        assert {row["bytes"] for row in found} == {8, 65536} and {row["buffers"] for row in found} == {
            "warm",
            "used",
        }
        assert {row["mode"] for row in found} == {"plain", "nearfield", "floor"}
    assert {(row["window"], row["target"]) for row in rows if row["op"] == "put"} == {("dynamic", "apart")}
    assert pairs(rows) and "<svg" in report.read_text() and "put, window dynamic" in drawn.read_text()
    assert rows[0]["machine"] in shown.splitlines()[0]


def running(word: str) -> list[int]:
    """Processes with that word in their command line, in a session of neighbours."""
    return [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if word in text_of(path).split("\0")
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_run_beside_and_end(kind: str) -> None:
    with Beside.parse(f"2,{kind}").running() as neighbours:
        assert len(neighbours) == 2 and set(neighbours) <= set(running(kind))
        before = [Path(f"/proc/{pid}/schedstat").read_text() for pid in neighbours]
        until = time.monotonic() + 30  # they do something
        while time.monotonic() < until:
            if all(
                Path(f"/proc/{pid}/schedstat").read_text() != old
                for pid, old in zip(neighbours, before, strict=True)
            ):
                break
        else:
            pytest.fail("a neighbour does nothing")
    assert not set(neighbours) & set(running(kind))
    with pytest.raises(ValueError, match="ended before"), Beside(1, kind).running() as (pid,):
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_neighbours_end_with_a_command_that_is_interrupted(by: signal.Signals) -> None:
    mine = str(12352 + 8 * by)  # bytes: a job by which it is known, also beside the other signals' tests
    arguments = ["--op", "allreduce", "--sizes", mine, "--seconds", "60", "--beside", "2,waking"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    # A shell that starts the tests in the background has its children ignore SIGINT.
    line = ["env", "--default-signal=INT", sys.executable, "-m", "nearfield", "bench", *arguments]
    command = subprocess.Popen(line, cwd=ROOT, **quiet)
    own: list[int] = []
    try:
        until = time.monotonic() + 60
        while len(own) < 2 and time.monotonic() < until:
            time.sleep(0.05)
            own = [pid for pid in running("waking") if pid in descendants(command.pid)]
        assert len(own) == 2
        command.send_signal(by)
        command.wait(30)
    finally:
        for pid in descendants(command.pid):
            if command.poll() is None:
                os.kill(pid, signal.SIGKILL)
        command.wait()
        jobs = [pid for pid in running(mine) if pid != os.getpid()]
        for pid in jobs:  # nobody ends the job of a command that is killed
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + 10
    while set(own) & set(running("waking")) and time.monotonic() < until:
        time.sleep(0.05)
    assert not set(own) & set(running("waking"))


def test_bench_says_what_it_does_not_measure_of_windows() -> None:
    for arguments, word in (
        (("--window", "own"), "there is no kind of window own; there are create, allocate, shared, dynamic"),
        (("--target", "all"), "there is no target all"),
        (("--buffers", "cold"), "without cold buffers"),
        (("--buffers", "hot"), "there is no kind of buffers hot"),
        (("--beside", "1,gpu"), "--beside knows no kind gpu; the kinds are cpu, memory, waking"),
        (("--beside", "cpu"), "N or N,kind"),
        (("--short", "20"), "without --short"),
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
        texts = [text_of(path) for path in Path("/proc").glob("[0-9]*/cmdline")]
        return [text for text in texts if str(mine) in text.split("\0")]

    until = time.monotonic() + 10  # what was killed takes a moment to end
    while left() and time.monotonic() < until:
        time.sleep(0.05)
    assert not left()


def test_loops_of_other_benchmarks(tmp_path: Path) -> None:
    operations = ["latency", "exchange", "bcast", "ibarrier", "iscatter", "ialltoallw"]
    loops = ["own", "imb", "imb-sync", "osu"]
    rows, shown = bench(tmp_path, "--op", ",".join(operations), "--sizes", "20000", "--loop", ",".join(loops))
    assert {(row["op"], row["loop"], row["buffers"], row["bytes"], row["mode"]) for row in rows} == {
        (op, loop, "used" if loop == "own" else "warm", 0 if op == "ibarrier" else 20000, mode)
        for op, loop, mode in itertools.product(operations, loops, ("plain", "nearfield"))
    }
    assert all(0 < row["lower"] <= row["median"] <= row["upper"] < 1e6 for row in rows)
    assert "iscatter, 2 ranks, warm buffers, loop imb-sync" in shown
    # Samples of a thousand calls, of a hundred, or of as many as a second suffices for.
    of = {(row["op"], row["loop"]): row["iterations"] for row in rows}
    assert of["ibarrier", "imb"] >= of["bcast", "osu"] >= 2
    for arguments, word in (
        (("--op", "put", "--loop", "imb"), "by `--loop own` only"),
        (("--op", "bcast", "--loop", "imb", "--short", "20"), "have no short form"),
        (("--op", "bcast", "--loop", "omb"), "there is no loop omb; there are own, imb, imb-sync, osu"),
    ):
        done = nearfield("bench", *arguments)
        assert done.returncode == 2 and word in " ".join(done.stderr.split()), done.stderr


@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_ranks_are_bound_to_a_cpu_each(host: str) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    # In one piece: launchers mix what ranks write at the same time.
    script = "import os; os.write(1, f'on {os.sched_getaffinity(0)}\\n'.encode())"
    program = bound([sys.executable, "-c", script])
    done = launch(host, len(cpus), program, served=UNKNOWN)
    found = sorted(re.findall(r"on \{(.*?)\}", done.stdout))
    assert found == [str(cpu) for cpu in cpus], done.text


def test_the_summary_holds_nearfield_against_the_best_host() -> None:
    def row(host: str, mode: str, median: float) -> dict:
        about = {"bytes": 8, "host": host, "mode": mode, "algorithm": "slots"}
        return about | {"median": median, "mean": median, "lower": median, "upper": median}

    rows = [row("a", "plain", 4.0), row("a", "nearfield", 1.0), row("a", "floor", 0.5)]
    rows += [row("b", "plain", 2.0), row("b", "nearfield", 3.0)]
    (cell,) = cells_of(rows)
    assert (cell["best"], cell["ratio"], cell["worst"], cell["floor"]) == (2.0, 1.0, 1.5, 2.0)
    assert cell["own"] == 1.5
    assert cells_of(rows[:1])[0]["ratio"] is None
