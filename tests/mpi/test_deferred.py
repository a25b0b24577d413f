"""Communicators whose first collective calls the host serves: results are those of all others, bit by bit, and who serves a
call is the same on all ranks, whatever only one of them has."""

import pytest

from tests.mpi.jobs import EVERYTHING, PROGRAMS, WHILE_DEFERRED, Completed, compile_library, hosts, launch
from tests.mpi.scenario_jobs import command_line, good_scenarios

BOTH = hosts("mpich", "openmpi")
SERVED = EVERYTHING.but(WHILE_DEFERRED)
# What a rank may have alone: settings that the first rank or each decides, and one of a host's.
LOCAL = """
NEARFIELD_DEFER=0 NEARFIELD_CHECK=1 NEARFIELD_ALGORITHM=allreduce:^slots NEARFIELD_CHOOSE=model NEARFIELD_REPRODUCIBLE=1
NEARFIELD_EAGER=64 NEARFIELD_PROTOCOL=queue NEARFIELD_PUBLISH=keep NEARFIELD_REACH=^mapped NEARFIELD_WAIT=sleep
NEARFIELD_PROGRESS=thread NEARFIELD_HEAP=off NEARFIELD_STATS=1 MPIR_CVAR_COLL_ALIAS_CHECK=0
"""


def by_reason(job: Completed) -> list[dict]:
    """How many calls of each operation went to the host, and why, on each rank."""
    return [{name: (one.calls, one.why) for name, one in rank.operations.items()} for rank in job.statistics]


@pytest.mark.parametrize("calls", ["", "3"])
@pytest.mark.parametrize("ranks", [2, 5])
@pytest.mark.parametrize("host", BOTH)
def test_first_calls_are_as_all_others(host: str, ranks: int, calls: str) -> None:
    env = {"NEARFIELD_DEFER": calls} if calls else {}
    first, _ = good_scenarios(
        host, ranks, "deferred_communicators", "deferred_windows", env=env, served=SERVED
    )
    why = [operation.why for operation in first.job.statistics[0].operations.values()]
    assert any(WHILE_DEFERRED in reasons for reasons in why), why


@pytest.mark.parametrize("host", BOTH)
def test_settings_of_one_rank_change_nothing_of_who_serves(host: str) -> None:
    script = (
        f'r=${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}; [ "$r" = 1 ] && export {" ".join(LOCAL.split())}; exec "$@"'
    )
    program = command_line(host, "deferred_of_all")
    plain, ours = (
        launch(host, 3, [*before, *program], timeout=30, served=SERVED)
        for before in ([], ["bash", "-c", script, "_"])
    )
    assert "good" in ours.stdout and not ours.timed_out, ours.text[-3000:]
    assert by_reason(ours) == by_reason(plain) and by_reason(ours)[1:] == by_reason(ours)[:-1]


@pytest.mark.parametrize("host", BOTH)
@pytest.mark.parametrize("ranks", [3, 5])
def test_a_run_time_of_devices_in_one_rank_changes_nothing_of_who_serves(host: str, ranks: int) -> None:
    cuda = compile_library(PROGRAMS / "fake_cuda.c", "libcuda.so.1")
    (done,) = good_scenarios(host, ranks, f"devices_of_one_rank {cuda}", timeout=30, served=SERVED)
    of_half = by_reason(done.job)[:3]
    assert of_half[1:] == of_half[:-1]


# Plain Intel MPI 2021.19 gets the first wrong, plain Open MPI (4.1, 5.0.11) ends in the second.
@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_the_host_gets_no_call_that_it_would_get_wrong(host: str, ranks: int) -> None:
    good_scenarios(
        host, ranks, "deferred_mixed_types", "deferred_freed_before_it_is_done", served=SERVED, timeout=60
    )
