"""Partitioned messages against a model, on every host."""

import re

import pytest

from tests.mpi.jobs import compile_c, hosts, launch, python_of, report_after_kill
from tests.mpi.resident import Jobs
from tests.mpi.scenario_jobs import good_scenarios

ALL = hosts("mpich", "openmpi", "impi")
# What wrong calls give, whatever the host says of them.
ERRORS = """\
negative partitions: argument, handled
negative count: count, handled
any source: rank, handled
any tag: tag, handled
rank: rank, handled
send: success
receive: success
not started: request, handled
not started, arrived: success
started twice: request, handled
beyond the last: argument, handled
before the first: argument, handled
range: argument, handled
range backwards: argument, handled
good: success
twice: argument, handled
twice in a list: argument, handled
of a receive: request, handled
arrival of a send: request, handled
arrival beyond the last: argument, handled
of an ordinary one: request, handled
arrival of an ordinary one: request, handled
incomplete: success
sent: success
received: success
longer than its receive, sent: success
longer than its receive: truncated, handled
to nobody: success
from nobody: success
nothing: success
"""


@pytest.mark.parametrize("heap", ["shared", "off"])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("host", ALL)
def test_random_ones_equal_the_model(jobs: Jobs, host: str, ranks: int, heap: str) -> None:
    job = jobs(host, ranks, {"NEARFIELD_HEAP": heap})
    job.run("oracle.talking:partitioned", seed=ranks, rounds=40 // ranks, timeout=100)


# The sender goes on when the receiver has looked at all of its own partitions.
STEP_BY_STEP = """
import itertools
import numpy as np
from mpi4py import MPI
comm, me = MPI.COMM_WORLD, MPI.COMM_WORLD.rank
for ints, sent_in, received_in in itertools.product((12, 12_000, 1_200_000), (1, 3, 4, 6), (1, 2, 3, 4, 12)):
    numbers = np.arange(ints, dtype="i4")
    data = numbers.copy() if me == 0 else np.full(ints, -1, "i4")
    make = comm.Psend_init if me == 0 else comm.Precv_init
    request = make([data, MPI.INT], sent_in if me == 0 else received_in, 1 - me, 0)
    request.Start()
    for marked in range(sent_in + 1):
        there = marked * ints // sent_in
        for k in range(received_in if me == 1 else 0):
            part = slice(k * ints // received_in, (k + 1) * ints // received_in)
            while part.stop <= there and not request.Parrived(k):
                pass
            assert part.stop <= there or not request.Parrived(k), (ints, sent_in, received_in, marked, k)
            assert part.stop > there or (data[part] == numbers[part]).all()
        comm.Barrier()
        if me == 0 and marked < sent_in:
            request.Pready(marked)
        comm.Barrier()
    request.Wait()
    request.Free()
    assert (data == numbers).all()
print("good", flush=True)
"""


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_a_partition_arrives_when_all_is_there_that_lies_in_it(host: str) -> None:
    job = launch(host, 2, [python_of(host), "-m", "mpi4py", "-c", STEP_BY_STEP], timeout=60)
    assert not job.timed_out and job.stdout.count("good") == 2, job.text[-3000:]


@pytest.mark.parametrize("host", ALL)
def test_threads_mark_and_watch_partitions(host: str) -> None:
    good_scenarios(host, 2, "partitioned_threads 30", threads=True)


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("host", ALL)
def test_they_pair_in_order_of_initialisation(host: str, ranks: int) -> None:
    good_scenarios(host, ranks, "partitioned_order")


@pytest.mark.parametrize("host", ALL)
def test_types_of_many_blocks_are_packed(host: str) -> None:
    good_scenarios(host, 2, "partitioned_undescribed")


@pytest.mark.parametrize("host", ALL)
def test_wrong_calls_give_errors(host: str) -> None:
    (done,) = good_scenarios(host, 2, "partitioned_errors")
    assert done.lines == ERRORS.splitlines(), done.job.text


def test_survivors_report_a_killed_partner() -> None:
    report = report_after_kill(3, [compile_c("mpich", "killed.c"), "partitioned"])
    assert re.search(r"process \d+ \(rank 1 of those on this node\) has ended", report), report
    assert "MPI_Wait: Process failed" in report, report
