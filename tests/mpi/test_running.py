"""That what runs jobs notices what is wrong with them: scenarios that fail, jobs that the host served, stale programs."""

import re

import pytest

from nearfield.statistics import Operation, Statistics
from tests.mpi.jobs import EVERYTHING, NOTHING, Served, compile_c, hosts, launch
from tests.mpi.scenario_jobs import good_scenarios, run_scenarios


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_each_scenario_has_a_verdict_of_its_own(host: str) -> None:
    names = [
        "itself_good a b",
        "itself_wrong",
        "itself_required",
        "itself_good",
        "itself_crashes",
        "itself_good",
    ]
    found = run_scenarios(host, 2, *names)
    assert [one.scenario for one in found] == names
    assert [one.good for one in found] == [True, False, False, True, False, True]
    assert found[0].lines == ["arguments: a b"]
    assert re.search(r"itself.c:\d+: rank 1: rank != 1: rank 1 of 2\n", found[1].job.stderr), found[
        1
    ].job.text
    with pytest.raises(AssertionError, match="itself_wrong"):
        good_scenarios(host, 2, "itself_good", "itself_wrong")
    with pytest.raises(AssertionError, match="no scenario itself_absent"):
        good_scenarios(host, 2, "itself_absent")


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_a_job_that_the_host_served_is_refused(host: str) -> None:
    program = [compile_c(host, "several.c"), "plain"]
    assert "good" in launch(host, 2, program, served=EVERYTHING).stdout
    for env in ({"NEARFIELD": "off"}, {"LD_PRELOAD": ""}):
        with pytest.raises(AssertionError, match="not served as stated"):
            launch(host, 2, program, env, served=EVERYTHING)
        assert "good" in launch(host, 2, program, env, served=NOTHING).stdout
    with pytest.raises(AssertionError, match="not served as stated"):
        launch(host, 2, program, served=NOTHING)


COUNTS = {
    "messages_by_fastboxes": 4,
    "messages_by_the_queue": 7,
    "messages_to_the_host": 2,
    "windows": 0,
    "windows_to_the_host_communicator": 0,
    "windows_to_the_host_memory": 0,
    "windows_to_the_host_dynamic": 1,
}


def statistics_of(rank: int, size: int, counts: dict[str, int], **operations: Operation) -> Statistics:
    """A rank's, where nothing else was counted."""
    return Statistics("node", 100 + rank, rank, size, operations, {}, {}, counts)


FIRST = statistics_of(
    0,
    1,
    COUNTS,
    allreduce=Operation(20, 320, 0.0001, 3, {"argument": 2, "switched off": 1}),
    bcast=Operation(4, 320, 0.0001, 0, {}),
)


@pytest.mark.parametrize(
    ("served", "rows"),
    [
        (
            EVERYTHING,
            ["allreduce: argument", "allreduce: switched off", "messages: all", "windows: dynamic"],
        ),
        (
            EVERYTHING.but("allreduce: argument", "messages", "windows: dynamic"),
            ["allreduce: switched off"],
        ),
        (EVERYTHING.but("allreduce", "messages: all", "windows: dynamic"), []),
        (
            EVERYTHING.but("allreduce", "messages", "windows"),
            ["windows: dynamic"],
        ),  # none of which was served
        (NOTHING, ["allreduce", "bcast", "messages"]),
    ],
)
def test_statistics_are_judged(served: Served, rows: list[str]) -> None:
    assert [line.partition(": rank 0")[0] for line in served.complaints([FIRST])] == rows
    assert served.nothing or served.complaints([]) == ["no rank has written statistics"]


def test_every_rank_has_to_have_statistics_and_to_be_served() -> None:
    idle = dict.fromkeys(COUNTS, 0)
    served = [statistics_of(rank, 2, idle, bcast=Operation(4, 8, 0, 0, {})) for rank in (0, 1)]
    assert not EVERYTHING.complaints(served)
    assert EVERYTHING.complaints(served[:1]) == ["ranks without statistics: [1]"]
    served[1].operations["bcast"] = Operation(4, 8, 0, 4, {"argument": 4})
    (complaint,) = EVERYTHING.complaints(served)
    assert complaint.startswith("bcast: argument: rank 1: ")
    assert not EVERYTHING.but("bcast").complaints(served)
    served.reverse()  # the first alone would have carried none
    assert EVERYTHING.but("bcast").complaints(served)
