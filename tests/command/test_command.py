"""The nearfield command: its help, its errors, `run`, `info`, and that pages say what it knows."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nearfield import __version__
from nearfield.commands import SUBCOMMANDS
from nearfield.operations import OPERATIONS
from tests.command.calling import COMMAND, nearfield
from tests.mpi.jobs import HOSTS, ROOT, hosts, python_of


def test_it_is_installed() -> None:
    done = subprocess.run([COMMAND, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == __version__


LISTING = """
import sys
from nearfield.cli import call
try:
    call(sys.argv[1:])
except SystemExit:
    print(*sys.modules, file=sys.stderr)
"""


def loaded_by(*arguments: str) -> set[str]:
    """The modules that the command has loaded when it ends."""
    words = [sys.executable, "-c", LISTING, *arguments]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_help_names_every_subcommand_and_loads_none_of_their_work() -> None:
    shown = nearfield("--help").stdout
    for name, about in SUBCOMMANDS.items():
        assert not about or re.search(rf"^ +{name} +{about}$", shown, re.MULTILINE), shown
        one = nearfield(name, "--help")
        assert one.returncode == 0 and one.stdout.startswith(f"usage: nearfield {name} [OPTIONS]")
    assert "nearfield.commands" in (loaded := loaded_by("--help"))
    assert not any(name.startswith("nearfield.commands.") for name in loaded)
    assert not loaded_by("bench", "--help") & {"jinja2", "numpy", "matplotlib", "nearfield.bench"}


@pytest.mark.parametrize(
    "arguments",
    ["run --help", "exec --help", "env", "check sh", "info", "explain allreduce", "model --ranks 2"],
)
def test_the_standard_library_suffices(arguments: str) -> None:
    words = [sys.executable, "-S", "-c", "from nearfield.cli import main; main()", *arguments.split()]
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.returncode in (0, 1) and done.stdout and not done.stderr, done.stderr


def test_a_process_gets_what_a_job_script_sets() -> None:
    shown = subprocess.run(
        [COMMAND, "exec", "--stats", "env"], capture_output=True, text=True, check=True
    ).stdout
    script = f'eval "$({COMMAND} env --stats)"; exec env'
    by_script = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
    ours = ("LD_PRELOAD", "NEARFIELD", "ASAN_OPTIONS")
    sets = [{line for line in text.splitlines() if line.startswith(ours)} for text in (shown, by_script)]
    assert (
        sets[0] == sets[1]
        and "NEARFIELD_STATS=1" in sets[0]
        and any("libnearfield-heap.so" in line for line in sets[0])
    )
    # Once is enough, also where another copy has been preloaded outside of a container.
    again = {"LD_PRELOAD": "/elsewhere/libnearfield.so:/lib/x/libother.so"}
    for words in ([COMMAND, "exec", "env"], ["sh", "-c", f'eval "$({COMMAND} env)"; exec env']):
        done = subprocess.run(words, env=os.environ | again, capture_output=True, text=True)
        (preloads,) = [line for line in done.stdout.splitlines() if line.startswith("LD_PRELOAD=")]
        assert "elsewhere" not in preloads and preloads.endswith("libnearfield-heap.so /lib/x/libother.so"), (
            preloads
        )


def test_csh_is_told_in_its_own_words() -> None:
    lines = subprocess.run(
        [COMMAND, "env", "--csh"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert all(line.startswith("setenv ") and line.endswith(";") for line in lines), lines


@pytest.mark.parametrize(
    "arguments",
    ["env --nosuch", "env true", "exec --report x.html true", "exec", "run", "compare --nosuch x"],
)
def test_what_is_not_understood_is_said_in_a_line(arguments: str) -> None:
    done = subprocess.run([COMMAND, *arguments.split()], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith(f"nearfield {arguments.split()[0]}: "), done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "completed"),
    [("exp", "explain"), ("run --log", "--log --log-file"), ("run x", ""), ("nosuch --", "")],
)
def test_shells_complete_subcommands_and_options(words: str, completed: str) -> None:
    script = f"source {ROOT}/packaging/shell/nearfield.bash; COMP_WORDS=(nearfield {words}); COMP_CWORD={len(words.split())}"
    words = ["bash", "-c", f'{script}; _nearfield; echo "${{COMPREPLY[*]}}"']
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.stdout.strip() == completed and not done.stderr, done.stderr


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        ("explain allreduce --bytes 4KB", "4KB is not a number of bytes; write 4096, 4K, 1M or 2G"),
        ("explain allreduce --bytes=-1", "-1 is not a number of bytes"),
        ("explain allreduce --ranks 0", "a number of at least 1"),
        ("explain allreduce --ranks 1", "no algorithm applies to allreduce on one rank"),
        ("explain allreduce --nodes 0", "a number of at least 1"),
        ("explain nosuch", "there is no collective nosuch; there are barrier, bcast"),
        ("model nosuch", "there are barrier, bcast"),
        ("model --ranks 0", "0 is not a number of ranks; write 2, a list 2,3,8, or 2:192"),
        ("model --ranks 8:2", "in increasing order"),
        ("model --sizes 4KB", "write 4096, 4K, 1M or 2G"),
        ("model --nodes some", "some is not a number of nodes"),
        ("bench --op nosuch", "there is no operation nosuch; there are barrier"),
        ("bench --op latency --protocol nosuch", "there is no protocol nosuch; there are queue, fastbox"),
        ("bench --hosts nosuch", "there is no host nosuch; there are mpich"),
        ("bench --heap huge", "there is no heap huge; there are shared, off"),
        ("bench --ranks 2,", "is not a number of ranks"),
        ("bench --seconds -1", "a number of at least 0"),
        ("plan --heap lots", "lots is not a number of bytes; write 4096, 4K, 1M or 2G"),
        ("plan --pairs some", "all, none or neighbours:N"),
        ("tune --op nosuch", "there are barrier, bcast"),
        ("compare --runs none true", "takes a number of at least 1"),
    ],
)
def test_misspelt_values_are_told_what_is_allowed(arguments: str, allowed: str) -> None:
    done = nearfield(*arguments.split())
    assert done.returncode == 2 and not done.stdout, done.stdout
    assert allowed in " ".join(done.stderr.split()) and "Traceback" not in done.stderr, done.stderr


def test_what_does_not_apply_is_said() -> None:
    assert "a barrier has no data" in nearfield("explain", "barrier", "--bytes", "1M").stderr
    assert "between two ranks" in nearfield("explain", "message", "--ranks", "4").stderr
    assert "--ranks-per-node" in nearfield("explain", "allreduce", "--nodes", "2", "--ranks", "4").stderr
    assert not nearfield("explain", "allreduce").stderr


def test_tables_in_pipes_have_their_titles() -> None:
    titles, *rows = nearfield(
        "model", "allreduce,bcast", "--ranks", "2", "--sizes", "8,1K"
    ).stdout.splitlines()
    assert titles.split("\t")[:4] == ["op", "ranks", "bytes", "chosen"] and len(rows) == 4
    assert all(row.count("\t") == titles.count("\t") for row in rows)


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_run_reaches_the_ranks(host: str) -> None:
    script = "import sys; from mpi4py import MPI; MPI.COMM_WORLD.Barrier(); sys.stdout.write(f'sum {MPI.COMM_WORLD.allreduce(1)}\\n')"
    options = HOSTS[host].options
    done = nearfield(
        "run", "--stats", "--host", host, "mpiexec", *options, "-n", "2", python_of(host), "-c", script
    )
    assert done.stdout.count("sum 2") == 2, done.stderr
    assert "barrier" in done.stderr


def test_run_starts_no_python_where_it_needs_none() -> None:
    for options in (["--log", "off"], ["--log=off", "--stats", "--heap", "off", "--"]):
        done = nearfield("run", *options, "echo", "good", PYTHONPROFILEIMPORTTIME="1")
        assert (done.returncode, done.stdout, done.stderr) == (0, "good\n", ""), done.text


def test_what_run_needs_python_for_loads_nothing_else() -> None:
    done = nearfield("run", "--log", "off", "--host", "mpich", "true", PYTHONPROFILEIMPORTTIME="1")
    loaded = set(re.findall(r"\| +([\w.]+)$", done.stderr, re.MULTILINE))
    assert done.returncode == 0 and "nearfield.hosts" in loaded
    assert not loaded & {"numpy", "matplotlib", "nearfield.compare", "nearfield.bench", "nearfield.model"}


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
    short, everything = nearfield("info", NEARFIELD_EAGER="4096").stdout, nearfield("info", "--all").stdout
    assert "NEARFIELD_ALGORITHM" in everything and "partitioned" in everything
    assert short.count("\n") < 35 and "NEARFIELD_EAGER" in short and "NEARFIELD_ALGORITHM" not in short


def test_the_documentation_has_the_settings_as_they_are() -> None:
    rows = nearfield("info", "--settings").stdout.strip().splitlines()[2:]
    page = (ROOT / "docs/reference/settings.md").read_text()
    assert len(rows) > 15 and not [row for row in rows if row not in page]


def test_the_command_knows_every_operation() -> None:
    assert set(OPERATIONS.split(",")) == set(json.loads(nearfield("info", "--json").stdout)["algorithms"])


def test_run_knows_its_heaps() -> None:
    assert "shared or off" in nearfield("run", "--heap", "huge", "true").stderr
    shown = nearfield("run", "--heap", "off", "sh", "-c", "echo $LD_PRELOAD")
    assert "libnearfield.so" in shown.stdout and "heap" not in shown.stdout
    assert "libnearfield-heap.so" in nearfield("run", "sh", "-c", "echo $LD_PRELOAD").stdout


def test_tables_of_the_reference_follow_their_sources(tmp_path: Path) -> None:
    sources = (
        "mpi/functions.toml",
        "mpi/functions.def",
        "mpi/statistics.def",
        "engine/settings/settings.cpp",
        "engine/base/early_settings.hpp",
        "include/nearfield.h",
        "scripts/reference.py",
        "scripts/functions.py",
    )
    for file in (
        *sources,
        *(f"docs/reference/{page.name}" for page in (ROOT / "docs/reference").glob("*.md")),
    ):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)

    def check() -> subprocess.CompletedProcess:
        words = [sys.executable, str(tmp_path / "scripts/reference.py"), "--check"]
        return subprocess.run(words, capture_output=True, text=True)

    assert check().returncode == 0, check().stderr
    # What is new must be described, and the page be written again.
    for file, old, new, complaint in (
        ("mpi/functions.toml", '"Probe ', '"Probing Probe ', "calls.md"),
        (
            "mpi/functions.def",
            "BLOCKING(File_open, ",
            "BLOCKING(Novel, int,)\nBLOCKING(File_open, ",
            "MPI_Novel",
        ),
        ("mpi/statistics.def", '"switched off"', '"a novelty"', "calls.md"),
        ("mpi/statistics.def", "fastboxes created", "?", "statistics.md"),
        (
            "engine/settings/settings.cpp",
            '"NEARFIELD_EAGER", "16384"',
            '"NEARFIELD_EAGER", "1"',
            "settings.md",
        ),
        (
            "engine/base/early_settings.hpp",
            '"NEARFIELD_LOG", "warn"',
            '"NEARFIELD_LOG", "off"',
            "settings.md",
        ),
        ("include/nearfield.h", "nf_barrier(", "nf_meet(", "c-api.md"),
        ("docs/reference/calls.md", "`Bcast`", "`Bcasts`", "run scripts/reference.py"),
    ):
        text = (tmp_path / file).read_text()
        assert old in text
        (tmp_path / file).write_text(text.replace(old, new, 1))
        done = check()
        assert done.returncode == 1 and complaint in done.stderr, done.stderr
        (tmp_path / file).write_text(text)
