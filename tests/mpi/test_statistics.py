"""Statistics at the end of a job: what is printed, what is written, and what becomes of files that cannot be."""

import re
from pathlib import Path

import pytest

from nearfield.statistics import VARIABLE, missing, read_statistics
from tests.mpi.jobs import compile_c, hosts, launch, python_of

BOTH = hosts("mpich", "openmpi")
PROGRAM = """
import sys
from mpi4py import MPI
world, room = MPI.COMM_WORLD, bytearray(1000)
for _ in range(3):
    world.Bcast(room)
world.Sendrecv(bytes(8), 1 - world.rank, 0, room, 1 - world.rank)
world.Dup().Free()
window = MPI.Win.Allocate(64, 1, comm=world)
window.Free()
if "die" in sys.argv:
    if world.rank == 1:
        import os, signal
        os.kill(os.getpid(), signal.SIGKILL)
    MPI.Finalize()
"""
# Lines that do not depend on the machine; times are stars.
TEXT = """\
nearfield: rank 0 of 2
  operation                          calls         bytes       seconds   to_the_host
  bcast                                  3          3000 *             0
  always the host's                  calls       seconds
  MPI_Comm_dup                           1 *
  memory                            in_use  in_use_at_most         asked        placed     elsewhere       unknown
  messages_by_the_queue                       1  messages and control records that this rank sent through the receiver's queue
  ranks_of_the_node                           2  ranks that Nearfield's messages reach
  windows                                     1  windows that Nearfield serves
"""


def command(*words: str) -> list[str]:
    """The program, which is the same under all hosts."""
    return ["-c", PROGRAM, *words]


@pytest.mark.parametrize("host", BOTH)
def test_the_text_is_the_table(host: str) -> None:
    job = launch(host, 2, [python_of(host), *command()], {"NEARFIELD_STATS": "1"})
    assert job.returncode == 0 and job.stderr.count("nearfield: rank ") == 1, job.text
    lines = re.sub(r" +\d+\.\d{6}", " *", job.stderr).splitlines()
    assert [line for line in TEXT.splitlines() if line not in lines] == [], job.stderr
    every = launch(host, 2, [python_of(host), *command()], {"NEARFIELD_STATS": "all"})
    assert every.stderr.count("nearfield: rank ") == 2, every.text


@pytest.mark.parametrize("host", BOTH)
def test_every_rank_writes_its_file(host: str, tmp_path: Path) -> None:
    env = {VARIABLE: f"{tmp_path}/%h.%r.json"}
    job = launch(host, 2, [python_of(host), *command()], env)
    assert job.returncode == 0 and "nearfield: rank" not in job.stderr, job.text
    ranks = read_statistics(tmp_path)
    assert [rank.rank for rank in ranks] == [0, 1] and not missing(ranks)
    for rank in ranks:
        assert rank.size == 2 and (tmp_path / f"{rank.host}.{rank.rank}.json").exists()
        assert (rank.operations["bcast"].calls, rank.operations["bcast"].bytes) == (3, 3000)
        assert rank.carried("bcast") == 3 and rank.carried("alltoall") == 0 and rank.sent == 1
        assert rank.functions["MPI_Comm_dup"].calls == 1
        assert rank.memory["control"].in_use_at_most >= rank.memory["control"].in_use > 0
        assert rank.counts["windows"] == 1 and rank.counts["memory_pages"] > 0
    assert [file.suffix for file in tmp_path.iterdir()] == [".json"] * 2


TRIED = """
from mpi4py import MPI
for _ in range(3000):
    MPI.COMM_WORLD.Bcast(bytearray(4096))
"""


def test_what_trials_have_decided_is_written_by_the_first_rank() -> None:
    job = launch("mpich", 2, [python_of("mpich"), "-c", TRIED], statistics=True)
    first, second = job.statistics
    (decision,) = (one for one in first.decisions if (one.operation, one.bytes) == ("bcast", 4096))
    assert decision.ranks == 2 and decision.algorithm in decision.tried and decision.calls > 0, decision
    assert decision.tried[decision.algorithm] > 0 and decision.seconds_beyond_best >= 0, decision
    assert not second.decisions


def test_of_ranks_that_die_there_are_no_statistics(tmp_path: Path) -> None:
    env = {VARIABLE: f"{tmp_path}/%r.json"}
    job = launch("mpich", 2, [python_of("mpich"), *command("die")], env)
    assert job.returncode != 0 and not (tmp_path / "1.json").exists()
    if any(tmp_path.iterdir()):  # the launcher may have ended the other one first
        assert missing(read_statistics(tmp_path)) == [1]


@pytest.mark.parametrize("host", BOTH)
def test_a_rank_that_cannot_write_says_so_once_and_the_job_goes_on(host: str, tmp_path: Path) -> None:
    pattern = f"{tmp_path}/nowhere/%r.json"
    job = launch(host, 2, [python_of(host), *command()], {VARIABLE: pattern})
    complaint = f"{VARIABLE}={pattern}: No such file or directory; there are no statistics of this rank"
    assert job.returncode == 0 and job.stderr.count(complaint) == 2, job.text


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("statistics.json", "without %r or %p all ranks would write one file"),
        ("%q.json", "after % write r, p, h or %"),
    ],
)
def test_a_pattern_that_is_none_is_an_error(pattern: str, why: str) -> None:
    job = launch("mpich", 2, [compile_c("mpich", "several.c"), "plain"], {VARIABLE: pattern})
    assert job.returncode != 0 and f"{VARIABLE}={pattern}: {why}" in job.stderr, job.text


def test_files_that_hold_none_are_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"run the job with {VARIABLE}="):
        read_statistics(tmp_path)
    for text in ("", "[]", "{}", '{"rank": 0'):
        (tmp_path / "0.json").write_text(text)
        with pytest.raises(ValueError, match=r"0\.json is not a file that NEARFIELD_STATS_FILE has written"):
            read_statistics(tmp_path)
