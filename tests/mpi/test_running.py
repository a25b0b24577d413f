"""That what runs jobs notices what is wrong with them: scenarios that fail, jobs that the host served, stale programs."""

import re
from pathlib import Path

import pytest

from tests.mpi.jobs import EVERYTHING, NOTHING, Served, compile_c, compiled, digest, hosts, launch
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


def test_a_job_that_does_not_end_is_noticed() -> None:
    (found,) = run_scenarios("mpich", 2, "passive static", timeout=0.5, threads=True)
    assert not found.good and found.job.timed_out


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


def test_statistics_are_the_job_s_own_only_where_the_test_asks_for_them() -> None:
    program = [compile_c("mpich", "several.c"), "plain"]
    unasked = launch("mpich", 2, program, served=EVERYTHING)
    assert not unasked.stderr and "allreduce" in unasked.statistics
    asked = launch("mpich", 2, program, {"NEARFIELD_STATS": "1"}, served=EVERYTHING)
    assert "allreduce" in asked.stderr


TABLE = """\
nearfield: rank 0 of 2
  operation                     calls          bytes      seconds  to the host  why
  allreduce                        20            320     0.000100            3  argument 2, switched off 1
  bcast                             4            320     0.000100            0  \n\
  MPI_Comm_dup                      3              -     0.000100            3  always
  messages                         11 sent (4 by fastboxes, 7 by the queue), 0 received before their receive was posted
  calls for messages                2 to the host
  windows                           0 served, 1 left to the host (communicator not on one node 0, memory out of reach 0, dynamic 1)
  in use: fastboxes              1000 bytes, 1000 at most
"""


@pytest.mark.parametrize(
    ("served", "rows"),
    [
        (EVERYTHING, ["allreduce", "allreduce", "calls", "windows"]),
        (EVERYTHING.but("allreduce: argument", "messages", "windows: dynamic"), ["allreduce"]),
        (EVERYTHING.but("allreduce", "messages: all", "windows: dynamic"), []),
        (EVERYTHING.but("allreduce", "messages", "windows"), ["windows"]),  # none of which was served
        (NOTHING, ["allreduce", "bcast", "messages"]),
    ],
)
def test_the_statistics_are_read(served: Served, rows: list[str]) -> None:
    assert [line.split()[0] for line in served.complaints(TABLE)] == rows
    assert served.nothing or served.complaints("nothing of Nearfield's") == [
        "Nearfield has printed no statistics"
    ]


def test_programs_are_made_anew_where_a_header_is_another(tmp_path: Path) -> None:
    header, source = tmp_path / "value.h", tmp_path / "program.c"
    source.write_text('#include "value.h"\nint main(void) { return VALUE; }\n')
    seen = []
    for value in (3, 4, 4):
        header.write_text(f"#define VALUE {value}\n")
        digest.cache_clear()
        compiled.cache_clear()
        made = Path(compiled("program", (str(source),)))
        seen.append((made.stat().st_ino, digest(str(made))))
    assert seen[0] != seen[1] and seen[1] == seen[2]
