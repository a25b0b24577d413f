"""`nearfield compare`: what it runs, what it says of figures, outputs and failures."""

import json
import subprocess
from pathlib import Path

import pytest

from nearfield.compared import BOTH, HEAP, MESSAGES, MODES, PLAIN, Compared, Run, differ
from nearfield.sameness import compare_outputs
from nearfield.verdict import verdict, word
from tests.command.calling import COMMAND, nearfield
from tests.mpi.jobs import HOSTS, compile_c, hosts

HAS_HEAP = 'case "$LD_PRELOAD" in *libnearfield-heap.so*) heap=1;; esac; '
HAS_MPI = 'case "$LD_PRELOAD" in *libnearfield.so*) mpi=1;; esac; '


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_a_program_runs_each_way_and_its_time_in_mpi_is_known(host: str, tmp_path: Path) -> None:
    file, page = tmp_path / "figures.json", tmp_path / "page.html"
    options = ["--host", host, "--runs", "1", "--json", str(file), "--report", str(page)]
    launcher = ["mpiexec", *HOSTS[host].options, "-n", "2"]
    done = nearfield("compare", *options, *launcher, compile_c(host, "several.c"), "plain")
    assert done.returncode == 0, done.text
    assert "of your time is in MPI: at most" in done.stdout and "the same to the last byte" in done.stdout
    assert "Nothing was served" not in done.stdout
    modes = json.loads(file.read_text())["modes"]
    assert list(modes) == list(MODES)
    assert all(modes[mode]["statuses"] == [0] and modes[mode]["cpu"]["median"] > 0 for mode in MODES)
    assert all(0 < modes[mode]["in_mpi"] <= 1 for mode in (PLAIN, BOTH))
    assert "MPI_Allreduce" in page.read_text()


def test_each_way_has_its_libraries_and_those_of_the_caller(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    text = f'echo "$NEARFIELD:$NEARFIELD_LOG:$NEARFIELD_RECORD:$LD_PRELOAD" >> {seen}'
    other = "libm.so.6"
    done = nearfield(
        "compare", "--runs=2", "--log", "error", "sh", "-c", text, LD_PRELOAD=other, NEARFIELD="off"
    )
    assert done.returncode == 0, done.text
    lines = [line.split(":") for line in seen.read_text().splitlines()]
    libraries = [[Path(name).name for name in line[3].split()] for line in lines]
    ours = [[], ["libnearfield-heap.so"], ["libnearfield.so"], ["libnearfield.so", "libnearfield-heap.so"]]
    wanted = [[*names, other] for names in [*ours, *ours[::-1], ours[2], ours[3]]]
    assert libraries == wanted
    assert [line[0] for line in lines] == [""] * 8 + ["off", ""]  # the last two record
    assert [bool(line[2]) for line in lines] == [False] * 8 + [True] * 2
    assert {line[1] for line in lines} == {"error"}


def test_an_output_that_differs_is_told_with_its_lines() -> None:
    text = f"{HAS_HEAP} echo same; echo result ${{heap:+not}} good"
    done = nearfield("compare", "--runs", "1", "sh", "-c", text)
    assert done.returncode == 1, done.text
    for mode in (HEAP, BOTH):
        lines = f"  only plain: result good\n  only with {mode}: result not good\n"
        assert f"Outputs DIFFER with {mode}:\n{lines}" in done.stdout
    assert f"DIFFER with {MESSAGES}" not in done.stdout


def test_a_failure_under_nearfield_is_told_with_its_words() -> None:
    text = f'{HAS_MPI} echo fine; [ "$mpi" ] && echo broken >&2 && exit 3; exit 0'
    done = nearfield("compare", "--runs", "2", "sh", "-c", text)
    assert done.returncode == 1, done.text
    for mode in (MESSAGES, BOTH):
        assert f"{mode} FAILED in 2 of 2 runs: exit status 3.\n  broken" in done.stdout
    assert f"{HEAP} FAILED" not in done.stdout


def test_a_command_that_fails_by_itself_is_not_compared() -> None:
    done = nearfield("compare", "sh", "-c", "echo what it says >&2; exit 5")
    assert done.returncode == 2 and "exit status 5" in done.stderr and "what it says" in done.stderr
    done = nearfield("compare", "--status", "5", "--runs", "1", "sh", "-c", "exit 5")
    assert done.returncode == 0 and "Exit statuses: 5 in all runs" in done.stdout, done.text


def test_what_is_not_understood_starts_nothing(tmp_path: Path) -> None:
    made = tmp_path / "made"
    for options in (
        ["--runs", "0"],
        ["--runs"],
        ["--heap", "off"],
        ["--json", "/nonexistent/file"],
        ["--host", "no"],
    ):
        done = nearfield("compare", *options, "touch", str(made))
        assert done.returncode == 2 and done.stderr and not made.exists(), options
    assert nearfield("compare").returncode == 2
    assert "cannot start /nonexistent" in nearfield("compare", "/nonexistent").stderr
    assert nearfield("compare", "--help").stdout.startswith("usage: nearfield compare")


def test_each_run_has_the_standard_input_that_is_a_file(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_text("a line\nand another\n")
    with given.open() as file:
        command = [COMMAND, "compare", "--runs", "1", "sh", "-c", 'test "$(wc -l)" = 2']
        done = subprocess.run(command, stdin=file, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "plain, other, same",
    [
        (["a 1\n"], "a 1\n", True),
        (["a 1\nb 2\n"], "b 2\na 1\n", True),  # ranks in another order
        (["a 1\n"], "a 2\n", False),
        (["a 1\n"], "a 1\na 1\n", False),
        (["a 1\nb\n"], "a 1\n", False),
        (["rank 0 has 5\nrank 1 has 6\n"], "rank 0 has 6\nrank 1 has 5\n", False),
        (["took 1.5 s\n"], "took 2.5 s\n", True),
        (["Elapsed time (s) = 3\n"], "Elapsed time (s) = 4\n", True),
        (["step 3: energy 1.5, 20 ms\n"], "step 3: energy 1.5, 30 ms\n", True),
        (["step 3: energy 1.5, 20 ms\n"], "step 3: energy 1.6, 20 ms\n", False),
        (["5 steps\n"], "6 steps\n", False),
        (["12 MB/s\n"], "13 MB/s\n", True),
        (["12 MB\n"], "13 MB\n", False),
        (["a 1 b 2\n", "a 1 b 3\n"], "a 1 b 4\n", True),  # changes without us, too
        (["a 1 b 2\n", "a 1 b 3\n"], "a 2 b 4\n", False),
        (["a\n", "a\na\n"], "a\na\na\n", True),
        (["a 1\n", "a 2\n"], "a 3\nb\n", False),
        # A measured line: what is short repeats by chance, what is long does not.
        (
            ["Output | 0.0008 | 1.2 | 0.04", "Output | 0.0009 | 1.2 | 0.04"],
            "Output | 0.0007 | 1.3 | 0.05",
            True,
        ),
        (["Output | 0.0008 | 1.2345", "Output | 0.0009 | 1.2345"], "Output | 0.0007 | 1.2346", False),
        (["Output | 0.0008 | 12", "Output | 0.0009 | 12"], "Output | 0.0007 | 13", False),
        (["Output | 0.0008 | 1.2", "Output | 0.0008 | 1.2"], "Output | 0.0008 | 1.3", False),
        (
            ["Pair | 0.7  | 20.4", "Pair | 0.71 | 20.43"],
            "Pair | 0.705|  9.4",
            True,
        ),  # numbers of other widths
    ],
)
def test_what_counts_as_the_same_output(plain: list[str], other: str, same: bool) -> None:
    found = compare_outputs(plain, other)
    assert found.same == same, found
    assert found.same == (not found.missing and not found.added)
    if sorted(other.splitlines()) not in [sorted(text.splitlines()) for text in plain] and same:
        assert found.left_out  # it says what it has not compared


@pytest.mark.parametrize(
    "plain, other, rounded",
    [
        ("energy -76.0414214208\n", "energy -76.0414214209\n", True),
        ("norm 1.23456e-05\n", "norm 1.23457e-05\n", True),
        ("norm 1.23456e-05\n", "norm 1.23477e-05\n", False),
        ("norm 1.234\n", "norm 1.235\n", False),
        ("norm 9.50000\n", "norm 9.50014\n", False),
        ("norm 9.50000\n", "norm 9.50001\n", True),
        ("sum 123456789\n", "sum 123456788\n", False),  # integers are the same by any order
        ("a 1.2345678\na 2.3456789\n", "a 2.3456788\na 1.2345679\n", True),
        ("a 1.2345678\n", "a 1.2345679\na 1.2345679\n", False),
    ],
)
def test_last_digits_of_sums_are_told_apart_from_other_results(plain: str, other: str, rounded: bool) -> None:
    found = compare_outputs([plain], other)
    assert found.same == rounded and bool(found.rounded) == rounded, found
    times = {mode: [1.0] * 3 for mode in MODES}
    whole = compared(times)
    whole.outputs = {BOTH: found}
    assert any("order of sums" in line for line in verdict(whole)) == rounded
    assert any("DIFFER" in line for line in verdict(whole)) == (not rounded)


def test_nothing_is_said_of_a_gain_where_nothing_can_be_known() -> None:
    words = ("of the time", "times as fast", "as long", "defect")
    short = compared({mode: [0.3, 0.31, 0.32] for mode in MODES} | {BOTH: [0.9] * 3})
    few = compared({mode: [2.0] for mode in MODES} | {BOTH: [4.0]})
    unserved = compared({mode: [2.0] * 3 for mode in MODES} | {BOTH: [4.0] * 3})
    unserved.unserved = ["no rank called MPI"]
    for found, why in ((short, "too short"), (few, "--runs"), (unserved, "Nothing was served")):
        lines = verdict(found)
        assert any(why in line for line in lines), lines
        assert not any(word in line for word in words for line in lines), lines


def compared(times: dict[str, list[float]], in_mpi: float = 0.02) -> Compared:
    """Of runs that took so long."""
    runs = {
        mode: [Run(wall, wall, 0, False, Path("/nonexistent"), "") for wall in times[mode]] for mode in MODES
    }
    return Compared(["program"], 0, runs, {PLAIN: in_mpi})


@pytest.mark.parametrize(
    "heap, messages, both, said",
    [
        (0.7, 1.0, 0.7, "Most of the gain comes from the allocator"),
        (1.0, 0.7, 0.7, "Most of the gain comes from the messages"),
        (0.7, 0.7, 0.65, "The heap alone and MPI alone each give most"),
        (0.9, 0.9, 0.8, "The gain needs both"),
        (1.0, 1.0, 1.0, "runs show no difference"),
        (1.0, 1.2, 1.2, "That is a defect"),
        (1.0, 0.8, 0.9, "less time with MPI alone"),
    ],
)
def test_it_says_whose_the_gain_is(heap: float, messages: float, both: float, said: str) -> None:
    noise = [0.99, 0.995, 1.0, 1.005, 1.01]
    of = {PLAIN: 1.0, HEAP: heap, MESSAGES: messages, BOTH: both}
    lines = verdict(compared({mode: [wall * each for each in noise] for mode, wall in of.items()}))
    assert any(said in line for line in lines), lines
    assert "2% of your time is in MPI: at most 2% can be gained" in lines[0]


def test_what_runs_cannot_show_is_not_claimed() -> None:
    times = {mode: [1.0, 2.0, 0.5, 1.0, 1.0] for mode in MODES} | {BOTH: [1.1, 2.2, 0.9, 1.3, 0.9]}
    lines = verdict(compared(times))
    assert any("5 runs show no difference" in line for line in lines), lines


def test_the_verdict_in_a_word() -> None:
    assert word([0.8, 0.9, 0.95, 0.9, 0.7], 2) == "faster" and word([1.05, 1.1, 1.3, 1.2, 1.1], 2) == "slower"
    assert word([0.9, 0.95, 1.1, 0.9, 0.7], 2) == word([0.99, 0.995, 0.998, 0.999, 0.99], 2) == "undecided"
    assert word([0.5] * 5, 0.9) == "too short" and word([0.5] * 4, 2) == "too few"


def test_chance_alone_seldom_decides() -> None:
    assert not differ([]) and not differ([1.0] * 9) and not differ([0.5, 0.5, 0.5, 0.5, 1.0])
    assert [runs for runs in range(1, 17) if differ([2.0] * runs)] == list(range(5, 17))
    fewest = {
        other: next(n for n in range(5, 40) if differ([0.5] * other + [2.0] * (n - other)))
        for other in range(4)
    }
    assert fewest == {0: 5, 1: 9, 2: 12, 3: 14}
