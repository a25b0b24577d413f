"""The log: who speaks, where to, and the line of MPI_Init."""

import re
import socket
from pathlib import Path

import pytest

from nearfield import __version__
from tests.mpi.jobs import EVERYTHING, HOSTS, LIBRARY, NOTHING, SANITIZED, UNKNOWN, compile_c, hosts, launch
from tests.selection import per_change

HOST = re.escape(socket.gethostname()[:64])
LINE = re.compile(
    rf"nearfield: {HOST} rank 0: Nearfield {re.escape(__version__)} under (?P<host>[^()]+) \((?P<path>[^()]+)\): "
    r"ranks: (?P<ranks>\d+), on this node: (?P<near>\d+); reach: (?P<reach>.*); heap: (?P<heap>.*); messages: (?P<messages>.*)"
)
WHO = re.compile(rf"nearfield: {HOST} (rank|process) \d+: ")

INFO = {"NEARFIELD_LOG": "info"}


def of_log(text: str) -> list[str]:
    """Its lines."""
    return [line for line in text.splitlines() if line.startswith("nearfield: ")]


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_the_first_rank_says_once_what_it_runs_on(host: str) -> None:
    job = launch(
        host, 3, [compile_c(host, "several.c"), "plain"], {"NEARFIELD_LOG": "info"}, served=EVERYTHING
    )
    lines = [found for line in of_log(job.stderr) if (found := LINE.fullmatch(line))]
    assert "good" in job.stdout and len(lines) == 1, job.text
    said = lines[0]
    assert said["host"].startswith({"mpich": "MPICH 5", "openmpi": "Open MPI v5"}[host])
    assert Path(said["path"]).resolve() == HOSTS[host].library.resolve()
    assert (said["ranks"], said["near"], said["messages"]) == ("3", "3", "served")
    assert said["reach"].startswith("mapped") and said["reach"].endswith("copy buffers")
    assert said["heap"] == ("the program's own" if SANITIZED else "shared")


@pytest.mark.parametrize("host", per_change(hosts("mpich", "openmpi")))
def test_the_line_says_what_is_left_out(host: str) -> None:
    env = {
        "NEARFIELD_LOG": "info",
        "NEARFIELD_HEAP": "off",
        "NEARFIELD_MESSAGES": "off",
        "NEARFIELD_REACH": "^cma",
    }
    job = launch(host, 2, [compile_c(host, "several.c"), "plain"], env=env)
    said = next(found for line in of_log(job.stderr) if (found := LINE.fullmatch(line)))
    assert (said["heap"], said["messages"]) == ("the program's own", "the host's")
    assert "cma" not in said["reach"]


@pytest.mark.parametrize("host", per_change(hosts("mpich", "openmpi")))
def test_the_line_says_which_heap_there_is_not_which_is_wished_for(host: str) -> None:
    env = {"NEARFIELD_LOG": "info", "NEARFIELD_HEAP": "shared", "LD_PRELOAD": str(LIBRARY)}
    job = launch(host, 2, [compile_c(host, "several.c"), "plain"], env=env)
    said = next(found for line in of_log(job.stderr) if (found := LINE.fullmatch(line)))
    assert said["heap"] == "the program's own", job.stderr


@pytest.mark.parametrize("host", per_change(hosts("mpich", "openmpi")))
def test_the_line_counts_the_ranks_of_the_node(host: str) -> None:
    text = 'r=${PMI_RANK:-$OMPI_COMM_WORLD_RANK}; export NEARFIELD_NODE=n$((r / 2)); exec "$0" plain'
    job = launch(host, 3, ["sh", "-c", text, compile_c(host, "several.c")], env=INFO, served=UNKNOWN)
    said = next(found for line in of_log(job.stderr) if (found := LINE.fullmatch(line)))
    assert (said["ranks"], said["near"]) == ("3", "2"), job.stderr


@pytest.mark.parametrize("host", per_change(hosts("mpich", "openmpi")))
def test_switched_off_the_line_says_so(host: str) -> None:
    env = {"NEARFIELD_LOG": "info", "NEARFIELD": "off"}
    job = launch(host, 2, [compile_c(host, "several.c"), "plain"], env=env, served=NOTHING)
    assert re.search(r"rank 0: Nearfield .*; the host serves every call: NEARFIELD=off\n", job.stderr), (
        job.stderr
    )


@pytest.mark.parametrize("host", per_change(hosts("mpich", "openmpi")))
def test_every_line_tells_its_rank(host: str) -> None:
    text = 'export NEARFIELD_NODE=n${PMI_RANK:-$OMPI_COMM_WORLD_RANK}; exec "$0" plain'
    job = launch(host, 2, ["sh", "-c", text, compile_c(host, "several.c")], env=INFO, served=UNKNOWN)
    lines = of_log(job.stderr)
    assert all(map(WHO.match, lines)), job.stderr
    assert {line.split(":")[1].split()[-1] for line in lines if " rank " in line} == {"0", "1"}, job.stderr


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_logs_go_to_files_by_host_process_and_rank(host: str, tmp_path: Path) -> None:
    text = 'export NEARFIELD_NODE=n${PMI_RANK:-$OMPI_COMM_WORLD_RANK}; exec "$0" plain'
    env = {"NEARFIELD_LOG": "info", "NEARFIELD_LOG_FILE": f"{tmp_path}/%h.%r.%p"}
    job = launch(host, 2, ["sh", "-c", text, compile_c(host, "several.c")], env=env, served=UNKNOWN)
    assert "good" in job.stdout and not of_log(job.stderr), job.text
    names = {file.name for file in tmp_path.iterdir()}
    assert names and all(re.fullmatch(rf"{HOST}\.(0|1|unknown)\.\d+", name) for name in names), names
    for rank in range(2):
        (file,) = tmp_path.glob(f"*.{rank}.*")
        lines = file.read_text().splitlines()
        assert lines and all(re.match(rf"nearfield: {HOST} rank {rank}: ", line) for line in lines)


@pytest.mark.parametrize("pattern", ["%x", "/nonexistent/%r", "/"])
def test_where_no_file_can_be_had_the_log_stays_and_says_why(pattern: str) -> None:
    env = {"NEARFIELD_LOG": "info", "NEARFIELD_LOG_FILE": pattern}
    job = launch("mpich", 2, [compile_c("mpich", "several.c"), "plain"], env=env, served=EVERYTHING)
    assert job.returncode == 0 and "good" in job.stdout, job.text
    complaints = [line for line in of_log(job.stderr) if f"NEARFIELD_LOG_FILE={pattern}: " in line]
    by_rank = [line.split(": ")[1] for line in complaints]
    assert complaints and len(set(by_rank)) == len(by_rank), job.stderr
    assert any(LINE.fullmatch(line) for line in of_log(job.stderr)), job.stderr
