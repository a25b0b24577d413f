"""`nearfield stats`: what the ranks of several jobs have written, summed up."""

from pathlib import Path

import pytest

from nearfield.served import summarize
from nearfield.statistics import PATTERN, VARIABLE, Operation, read_statistics
from tests.command.calling import nearfield
from tests.mpi.jobs import Completed, compile_c, hosts, launch


def job(place: Path, host: str, ranks: int) -> Completed:
    """A job whose ranks write into that directory."""
    return launch(host, ranks, [compile_c(host, "several.c"), "plain"], env={VARIABLE: f"{place}/{PATTERN}"})


@pytest.mark.parametrize("host", hosts("mpich"))
def test_jobs_are_summed_up(tmp_path: Path, host: str) -> None:
    for ranks in (2, 3):
        assert job(tmp_path, host, ranks).returncode == 0
    said = nearfield("stats", str(tmp_path)).stdout
    assert "2 jobs, 5 ranks, 3 in one job at most." in said, said
    # An allreduce and a reduce of four bytes on each rank.
    assert "By shared memory: 10 collective calls" in said and "allreduce 5" in said and "reduce 5" in said, (
        said
    )
    assert "Left to the MPI library" not in said, said


@pytest.mark.parametrize("host", hosts("mpich"))
def test_what_the_host_served_is_said_with_the_reason(tmp_path: Path, host: str) -> None:
    assert job(tmp_path, host, 2).returncode == 0
    ranks = read_statistics(tmp_path)
    for one in ranks:
        one.operations["bcast"] = Operation(9, 0, 1.5, 9, {"team is deferred": 8, "argument": 1})
    said = "\n".join(summarize(ranks))
    assert "Left to the MPI library: 18 calls: bcast: team is deferred 16, bcast: argument 2." in said, said
    assert "all ranks together: 3.0 s." in said, said


def test_where_there_is_nothing_that_is_said(tmp_path: Path) -> None:
    done = nearfield("stats", str(tmp_path))
    assert done.returncode == 2 and "there are no statistics" in done.stderr, done.stderr
