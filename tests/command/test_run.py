"""`nearfield run`: it becomes the launcher, and says afterwards where nothing was served."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.command.calling import COMMAND, nearfield
from tests.command.test_check import EMPTY, build
from tests.mpi.jobs import HOSTS, Completed, compile_c, hosts, kill_tree

SAYS = "nearfield run: "
NOBODY = "no process of this node completed MPI_Init"


def speaking(command: list[str], **env: str) -> Completed:
    """Runs a command, bounded, until nobody has its standard error any more: whoever watches speaks behind it."""
    process = subprocess.Popen(
        command,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        out, err = process.communicate(timeout=60)
    finally:
        kill_tree(process.pid)
    return Completed(process.returncode, out, err, False)


def run_job(host: str, ranks: int, program: list[str], *options: str, **env: str) -> Completed:
    """A job of a host by `nearfield run`."""
    launcher = ["mpiexec", *HOSTS[host].options, "-n", str(ranks)]
    return speaking([COMMAND, "run", "--host", host, *options, *launcher, *program], **env)


def words() -> set[str]:
    """Files in which processes leave their word."""
    return {str(file) for file in Path(tempfile.gettempdir()).glob("nearfield-run-*")}


@pytest.fixture(autouse=True)
def apart(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch):
    """Temporary files of each test lie in a directory of their own, in which nothing may stay."""
    own = tmp_path_factory.mktemp("t")
    monkeypatch.setenv("TMPDIR", str(own))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield
    end = time.monotonic() + 20
    while words() and time.monotonic() < end:
        time.sleep(0.05)
    assert not words()


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_nothing_is_said_where_ranks_are_served(host: str) -> None:
    job = run_job(host, 2, [compile_c(host, "several.c"), "plain"])
    assert job.returncode == 0 and "good" in job.stdout and SAYS not in job.stderr, job.text


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_it_says_that_it_was_switched_off(host: str) -> None:
    job = run_job(host, 2, [compile_c(host, "several.c"), "plain"], NEARFIELD="off")
    assert job.returncode == 0 and "good" in job.stdout, job.text
    assert f"{SAYS}Nearfield served nothing in 2 processes: NEARFIELD=off" in job.stderr, job.stderr


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_it_says_that_each_rank_is_alone_on_its_node(host: str) -> None:
    text = 'export NEARFIELD_NODE=n${PMI_RANK:-$OMPI_COMM_WORLD_RANK}; exec "$0" plain'
    job = run_job(host, 2, ["sh", "-c", text, compile_c(host, "several.c")])
    assert "Nearfield served nothing in 2 processes" in job.stderr and "several nodes" in job.stderr, job.text


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_where_some_ranks_are_served_nothing_is_said(host: str) -> None:
    text = 'r=${PMI_RANK:-$OMPI_COMM_WORLD_RANK}; export NEARFIELD_NODE=n$((r / 2)); exec "$0" plain'
    job = run_job(host, 3, ["sh", "-c", text, compile_c(host, "several.c")])
    assert job.returncode == 0 and SAYS not in job.stderr, job.text


def test_it_says_that_every_rank_has_a_world_of_its_own() -> None:
    done = speaking([COMMAND, "run", "--host", "mpich", compile_c("mpich", "several.c"), "plain"])
    assert "MPI_COMM_WORLD has one rank" in done.stderr and "another MPI" in done.stderr, done.text


def test_of_a_program_that_is_static_it_says_so(tmp_path: Path) -> None:
    program = build(tmp_path, EMPTY, "-static")
    job = run_job("mpich", 2, [program])
    assert job.returncode == 0 and NOBODY in job.stderr, job.text
    assert f"\n  {program}: not served: it is linked statically" in job.stderr, job.stderr
    assert "mpiexec:" not in job.stderr
    assert "other nodes" in job.stderr


def test_of_a_program_without_mpi_it_says_so(tmp_path: Path) -> None:
    done = nearfield("run", build(tmp_path, EMPTY))
    assert done.returncode == 0 and not done.stdout, done.stdout
    assert NOBODY in done.stderr and "no MPI" in done.stderr
    assert done.stderr.count("\n") == 2


@pytest.mark.parametrize(("ends", "status"), [("exit 7", 7), ("kill -ABRT $$", 128 + signal.SIGABRT)])
@pytest.mark.parametrize("host", hosts("mpich"))
def test_of_a_job_that_fails_it_says_the_exit_status(host: str, ends: str, status: int) -> None:
    job = run_job(host, 2, ["sh", "-c", ends])
    assert job.returncode != 0, job.text
    (said,) = [line for line in job.stderr.splitlines() if line.startswith(SAYS)]
    assert f"the job ended with exit status {job.returncode}, and {NOBODY}" in said, job.stderr
    assert "linked with no MPI" not in job.stderr  # neither the launcher nor the shell is to blame
    alone = speaking([COMMAND, "run", "sh", "-c", ends])
    assert f"exit status {status}, and {NOBODY}" in alone.stderr, alone.stderr


def test_a_launcher_has_no_children_but_its_own() -> None:
    # As strace, which ends when it has none of any kind.
    text = (
        "import os\ntry: os.waitpid(-1, 0x40000000)\nexcept ChildProcessError: print('childless')"  # __WALL
    )
    done = speaking([COMMAND, "run", sys.executable, "-c", text])
    assert done.stdout == "childless\n", done.text


def test_a_program_in_the_path_is_judged_not_its_launcher() -> None:
    done = nearfield("run", "env", "-u", "NOTHING", "true")
    assert done.returncode == 0 and "\n  true: not served" in done.stderr, done.stderr
    assert "env:" not in done.stderr


@pytest.mark.parametrize("how", ["env", "script"])
def test_it_says_that_a_tool_has_taken_its_place(tmp_path: Path, how: str) -> None:
    program = build(tmp_path, EMPTY)
    wrapper = tmp_path / "wrapper.sh"
    wrapper.write_text(f"#!/bin/sh\n# LD_PRELOAD=libdl.so.2\nexport LD_PRELOAD='libm.so.6'\nexec {program}\n")
    wrapper.chmod(0o755)
    done = nearfield("run", *(["env", "LD_PRELOAD=libm.so.6", program] if how == "env" else [str(wrapper)]))
    assert done.returncode == 0 and NOBODY in done.stderr, done.stderr
    assert "\n  LD_PRELOAD=libm.so.6, which the command sets" in done.stderr, done.stderr
    assert "linked" not in done.stderr


def test_an_option_may_have_an_empty_value() -> None:
    done = nearfield("run", "--log", "off", "--algorithm=", "env", "env")
    assert "NEARFIELD_ALGORITHM=\n" in done.stdout, done.stderr


def test_directories_are_no_patterns(tmp_path: Path) -> None:
    here = tmp_path / "50%rank"
    here.mkdir()
    done = subprocess.run(
        [COMMAND, "run", "--log", "off", "--log-file", "log.%r", "env"],
        cwd=here,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert f"NEARFIELD_LOG_FILE={tmp_path}/50%%rank/log.%r\n" in done.stdout, done.stderr


@pytest.mark.parametrize("level", ["off", "error"])
def test_who_does_not_want_to_know_is_not_told(level: str) -> None:
    done = nearfield("run", "--log", level, "true")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_exit_status_streams_and_process_are_the_launchers() -> None:
    text = "read line; echo got $line $$; exit 7"
    process = subprocess.Popen(
        [COMMAND, "run", "sh", "-c", text],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = process.communicate(b"a line\n", timeout=60)
    assert process.returncode == 7 and out == f"got a line {process.pid}\n".encode()
    assert NOBODY.encode() in err


def signals_of_a_terminal() -> None:
    """What a shell's job in the background, or nohup, has had ignored."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGHUP])
def test_signals_reach_the_launcher_itself(number: int) -> None:
    with tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            [COMMAND, "run", "sh", "-c", "echo ready; exec sleep 60"],
            stdout=subprocess.PIPE,
            stderr=err,
            preexec_fn=signals_of_a_terminal,
        )
        try:
            assert process.stdout.readline() == b"ready\n"
            process.send_signal(number)
            assert process.wait(20) == -number
            assert process.stdout.read() == b""  # nobody else holds it
        finally:
            kill_tree(process.pid)


def test_the_launcher_has_no_child_that_it_did_not_start() -> None:
    text = "import os\ntry: print(os.wait())\nexcept ChildProcessError: print('none')"
    assert nearfield("run", "python3", "-c", text).stdout == "none\n"


def test_a_launcher_that_is_not_there_is_all_that_is_said() -> None:
    done = nearfield("run", "/nonexistent/launcher")
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr


def test_a_hung_reader_is_no_concern() -> None:
    # Standard error is closed before it speaks.
    process = subprocess.Popen([COMMAND, "run", "sleep", "0.5"], stderr=subprocess.PIPE)
    process.stderr.close()
    assert process.wait(20) == 0


def test_programs_end_when_nobody_reads_them_any_more() -> None:
    done = nearfield("run", "sh", "-c", "(yes; echo ended $? >&2) | head -n 1")
    assert done.stdout == "y\n" and f"ended {128 + signal.SIGPIPE}" in done.stderr, done.stderr
