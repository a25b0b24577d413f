"""MPI's tools interface: variables of Nearfield's behind those of the host, which stay as they are."""

import re

import pytest

from tests.mpi.jobs import (
    STANDARD,
    UNKNOWN,
    Completed,
    compile_c,
    compile_for_the_standard_abi,
    hosts,
    launch,
)

# All hosts, and MPICH by the standard ABI.
ALL = [*hosts(), pytest.param("abi", marks=pytest.mark.skipif(not STANDARD.exists(), reason="not installed"))]
# Where the plain host crashes.
CANNOT = {"debian-openmpi": {"TOOLS_WITHOUT_END": "1"}, "abi": {"TOOLS_WITHOUT_ALL": "1"}}
PHASES = ("before", "between", "after")
KINDS = ("cvar", "pvar", "category")


def tools(
    host: str, ranks: int, *what: str, env: dict[str, str] | None = None, nearfield: bool = True
) -> Completed:
    """Runs one part of the program, which must end well."""
    launcher = "mpich" if host == "abi" else host
    env = (env or {}) | CANNOT.get(host, {})
    program = compile_for_the_standard_abi("tools.c") if host == "abi" else compile_c(host, "tools.c")
    # Parts of it never initialise MPI, and it counts itself what is served.
    job = launch(launcher, ranks, [program, *what], env=env, nearfield=nearfield, served=UNKNOWN)
    assert not job.timed_out and job.returncode == 0 and "good" in job.stdout, job.text[-3000:]
    return job


class Listing:
    """What a tool sees: names in the order of their indices, per phase and kind; what categories hold, by names."""

    def __init__(self, text: str) -> None:
        self.names = {(phase, kind): [] for phase in PHASES for kind in KINDS}
        for phase, kind, index, name, found in re.findall(
            r"^(\w+) (cvar|pvar|category) (\d+) (.*?)(?: (\d+))?$", text, re.MULTILINE
        ):
            assert int(index) == len(self.names[phase, kind])
            self.names[phase, kind].append((name, found and int(found)))
        self.held = sorted(re.findall(r"^(\w+) holds (.*) (cvar|pvar|category) (.*)$", text, re.MULTILINE))
        assert "wrote too much" not in text


def is_ours(name: str) -> bool:
    """Whether a variable is Nearfield's."""
    return name.startswith("nearfield")


@pytest.mark.parametrize("first", ["early", "late"])
@pytest.mark.parametrize("host", ALL)
def test_the_host_s_variables_stay_as_they_are(host: str, first: str) -> None:
    plain = Listing(tools(host, 1, "list", first, nearfield=False).stdout)
    ours = Listing(tools(host, 1, "list", first).stdout)
    for kind in KINDS:
        known: list = []
        base = None
        for phase in PHASES:
            theirs, all_names = plain.names[phase, kind], ours.names[phase, kind]
            if phase == "before" and first == "late":
                assert not all_names
                continue
            base = len(theirs) if base is None else base
            own = [i for i, (name, _) in enumerate(all_names) if is_ours(name)]
            assert own == list(range(base, base + len(own))) and bool(own) == (kind == "pvar")
            shifted = [
                (name, found if found == "" or found < base else found + len(own)) for name, found in theirs
            ]
            assert [one for one in all_names if not is_ours(one[0])] == shifted
            # Ours are found by their names, and what an index has meant once it always means.
            assert all(found == i for i, (name, found) in enumerate(all_names) if is_ours(name))
            # Open MPI's may go: the name is an error then.
            assert all(
                name == was or "(" in (name[0], was[0])
                for (name, _), was in zip(all_names, known, strict=False)
            )
            assert len(all_names) >= len(known)
            known = [name for name, _ in all_names]
    assert ours.held == plain.held
    last = [name for name, _ in ours.names["between", "pvar"] if is_ours(name)]
    assert len(set(last)) == len(last) > 100


# What the program does between its readings; 17 calls of 16 doubles.
COUNTED = """\
before: 0 calls, 0 ranks
nearfield_allreduce_calls +17
nearfield_barrier_calls +3
nearfield_bcast_calls +7
nearfield_bcast_to_the_host +2
nearfield_bcast_to_the_host_switched_off +2
nearfield_neighbor_alltoall_calls +7
nearfield_scan_calls +1
nearfield_windows +0
nearfield_puts_and_gets +4
nearfield_host_calls +0
bytes +2176
time passes
ranks 2
messages of neighbours count
messages +11
large +1048576
memory +1048576
memory +0
highest kept
all handles +1
after: +1 calls, messages kept
"""


@pytest.mark.parametrize("statistics", ["0", "1"])
@pytest.mark.parametrize("host", ALL)
def test_performance_variables_count_exactly(host: str, statistics: str) -> None:
    job = tools(host, 2, "counts", env={"NEARFIELD_STATS": statistics})
    assert job.stdout.replace("good\n", "") == COUNTED
    assert ("allreduce" in job.stderr) == (statistics == "1")


def test_a_host_that_serves_all_is_told_of() -> None:
    job = tools("mpich", 2, "counts", env={"NEARFIELD": "off"})
    assert "nearfield_allreduce_calls +17" in job.stdout and "nearfield_bcast_to_the_host +7" in job.stdout
    assert "bytes +0" in job.stdout and "ranks 0" in job.stdout and "messages +0" in job.stdout


# Of calls that are about variables of Nearfield's.
ERRORS = """\
name before: T_ERR_NOT_INITIALIZED
session null: T_ERR_INVALID_SESSION
start: T_ERR_PVAR_NO_STARTSTOP
stop: T_ERR_PVAR_NO_STARTSTOP
write: T_ERR_PVAR_NO_WRITE
reset: T_ERR_PVAR_NO_WRITE
readreset: T_ERR_PVAR_NO_ATOMIC
read: SUCCESS
read in null: T_ERR_INVALID_SESSION
read in another: T_ERR_INVALID_HANDLE
start in another: T_ERR_INVALID_HANDLE
free in another: T_ERR_INVALID_HANDLE
read of another: T_ERR_INVALID_HANDLE
free: SUCCESS
null afterwards: 1
freed: read: T_ERR_INVALID_HANDLE
freed: start: T_ERR_INVALID_HANDLE
freed: free: T_ERR_INVALID_HANDLE
null afterwards: 1
with its session: read: T_ERR_INVALID_HANDLE
with its session: read in a new one: T_ERR_INVALID_HANDLE
pvar after: T_ERR_NOT_INITIALIZED
name after: T_ERR_NOT_INITIALIZED
good
"""


@pytest.mark.parametrize("host", ALL)
def test_wrong_calls_are_errors(host: str) -> None:
    assert tools(host, 1, "errors").stdout == ERRORS


@pytest.mark.parametrize("host", ALL)
def test_what_is_wrong_for_the_host_still_is(host: str) -> None:
    plain = tools(host, 1, "wrong", nearfield=False).stdout.splitlines()
    ours = tools(host, 1, "wrong").stdout.splitlines()
    # Some builds of MPICH look at few arguments.
    assert [one for one, was in zip(ours, plain, strict=True) if "crashes" not in was] == [
        was for was in plain if "crashes" not in was
    ]
    assert "no such pvar: T_ERR_INVALID_NAME" in plain


@pytest.mark.parametrize("host", ALL)
def test_the_interface_begins_anew_where_the_host_can(host: str) -> None:
    if "anew: SUCCESS" not in tools(host, 1, "wrong", nearfield=False).stdout:
        pytest.skip("the host cannot")
    assert "anew: SUCCESS" in tools(host, 1, "anew").stdout


# The second number is the length of the whole name with its end; dots are zeros, the rest is as it was.
TEXTS = """\
64 of 21: nearfield_scan_calls.### good
21 of 21: nearfield_scan_calls.### good
20 of 21: nearfield_scan_call.#### good
5 of 21: near.################### good
1 of 21: .####################### good
0 of 21: ######################## good
64 of 21: ######################## good
without a length: ########
good
"""


@pytest.mark.parametrize("host", ALL)
def test_strings_are_cut_and_told_the_length_of(host: str) -> None:
    assert tools(host, 1, "texts").stdout == TEXTS


@pytest.mark.parametrize("host", ALL)
def test_threads_have_handles_of_their_own(host: str) -> None:
    assert "wrong: 0" in tools(host, 1, "threads").stdout
