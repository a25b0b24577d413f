"""Programs that plain hosts run, odd as they are: looks alone, communicators freed early, arguments that one rank gets wrong."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.mpi.jobs import AT_ONCE, EVERYTHING, HOSTS, UNKNOWN, compiled, hosts, launch
from tests.mpi.scenario_jobs import good_scenarios

LIVES = [
    "outlives_buffered",
    "outlives_collective",
    "outlives_first",
    "outlives_error",
    "outlives_many",
    "outlives_anybody",
]
# One looks by a communicator whose messages are the host's, one by a dynamic window.
LOOKS = replace(EVERYTHING.but("messages", "windows: dynamic"), anywhere=True)
ERRORS = EVERYTHING.but(
    *(
        f"{name}: argument"
        for name in ("allreduce", "reduce_scatter", "scan", "exscan", "reduce_scatter_block")
    ),
    *(f"{name}: argument" for name in ("allgather", "allgatherv", "alltoall", "alltoallv", "gather")),
    "allreduce: datatype",
)


@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_looks_keep_what_is_under_way_going(host: str) -> None:
    good_scenarios(host, 2, "looks", env=AT_ONCE, served=LOOKS)


@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_what_is_under_way_outlives_its_communicator(host: str) -> None:
    good_scenarios(host, 2, *LIVES, env=AT_ONCE)


@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_what_is_wrong_for_the_plain_host_is_an_error(host: str) -> None:
    scenarios = ("in_place_where_it_may_not_be", "first_error")
    good_scenarios(host, 2, *scenarios, env=AT_ONCE, served=ERRORS)


def test_so_they_do_with_a_progress_thread() -> None:
    env = {"NEARFIELD_PROGRESS": "thread", **AT_ONCE}
    good_scenarios("mpich", 2, "looks iprobe", "outlives_collective", "outlives_first", env=env)


# Open MPI takes equal addresses for in place.
@pytest.mark.parametrize("host", hosts("mpich", "impi"))
def test_ranks_that_get_nothing_judge_aliases_as_the_others(host: str) -> None:
    good_scenarios(host, 3, "wrong_aliased", served=ERRORS)


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_what_one_rank_gets_wrong_leaves_nobody_waiting(host: str) -> None:
    good_scenarios(host, 3, "wrong_unequal", "wrong_early", "wrong_statuses", env=AT_ONCE, served=ERRORS)


def test_errors_that_mpich_alone_raises_are_raised() -> None:
    for nearfield in (True, False):
        good_scenarios("mpich", 2, "wrong_elements", nearfield=nearfield, served=UNKNOWN)


def test_mpich_remarks_upon_persistent_requests_that_are_never_freed() -> None:
    remarks = []
    for nearfield in (True, False):
        (found,) = good_scenarios("mpich", 2, "wrong_kept", nearfield=nearfield, served=UNKNOWN)
        remarks.append(found.job.text.count("freeing inactive persistent request"))
    assert remarks[0] == remarks[1] > 0, remarks


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_what_was_cut_is_counted_as_the_host_does(host: str) -> None:
    for nearfield in (True, False):
        good_scenarios(host, 2, f"wrong_counts {int(host == 'openmpi')}", nearfield=nearfield, served=UNKNOWN)


ENDS = """
#include <mpi.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank, value = 0, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) _exit(argv[1][0] - '0');
  if (argv[2][0] == 'r') MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
}
"""


@pytest.mark.parametrize("waits", ["recv", "allreduce"])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_a_rank_that_exits_while_others_wait_ends_the_job_as_without_nearfield(
    host: str, waits: str, tmp_path: Path
) -> None:
    source = tmp_path / "ends.c"
    source.write_text(ENDS)
    where = HOSTS[host]
    program = compiled(f"ends-{host}", (f"-I{where.include}", str(source), str(where.library)))
    for status in (0, 3):
        jobs = [
            launch(host, 2, [program, str(status), waits], nearfield=nearfield, served=UNKNOWN)
            for nearfield in (True, False)
        ]
        assert not any(job.timed_out for job in jobs), jobs[0].text
        # MPICH's launcher kills the others, and races to see whether it tells of them or of the one that has ended.
        statuses = [bool(job.returncode) if host == "mpich" else job.returncode for job in jobs]
        assert status == 0 or statuses[0] == statuses[1] != 0, jobs[0].text + jobs[1].text
