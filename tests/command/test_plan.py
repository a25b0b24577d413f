"""`nearfield plan`: what it predicts is what jobs hold, and what it advises fits."""

import json
import re
from pathlib import Path

import pytest

from nearfield.plan import COMPUTED, held, make_plan, partners_of, plan_job
from nearfield.statistics import VARIABLE, read_statistics
from tests.command.calling import nearfield
from tests.mpi.jobs import AT_ONCE, SANITIZED, Completed, compile_c, hosts, launch

MIB, GIB = 1 << 20, 1 << 30
COLLECTIVES = 8  # calls on static arrays
# Two sockets; beside the first one there is a little fast memory.
MACHINE = """
cpus = 8
cores = 4
sockets = 2
cache = 8388608
l2 = 1048576
memory = 0.1
all_memory = 0.1
[numa.0]
bytes = 4294967296
cpus = [0, 3]
bandwidth = 20000
latency = 100
[numa.1]
bytes = 4294967296
cpus = [4, 7]
bandwidth = 20000
latency = 100
[numa.2]
bytes = 104857600
beside = "0"
bandwidth = 200000
latency = 140
"""


def run(host: str, ranks: int, partners: int, *more: int) -> Completed:
    """A job of such ranks under Nearfield, with the statistics of all. `more`: calls of collectives, bytes of a window."""
    program = [compile_c(host, "partners.c"), str(partners), *map(str, more or (COLLECTIVES,))]
    # By trials, a busy machine may choose another protocol.
    env = AT_ONCE | {"NEARFIELD_PROTOCOL": "copy-buffers"}
    job = launch(host, ranks, program, env=env, statistics=True)
    assert job.returncode == 0 and "good" in job.stdout, job.text[-3000:]
    return job


@pytest.fixture(scope="module", autouse=True)
def measured() -> None:
    """The first five jobs of a machine measure it, and take copy buffers for that."""
    for _ in range(5):
        run("mpich", 2, 0)


def of_components(plan: dict) -> dict[str, dict]:
    """What the plan computes, by component, and of the segment."""
    rows = {row["name"]: row for row in plan["components"] if row["name"] in COMPUTED}
    return rows | {"segment": plan["segment"]}


@pytest.mark.parametrize("pairs", ["all", "neighbours:1", "none"])
@pytest.mark.parametrize("ranks", [2, 3, 5, 8])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_predicted_bytes_are_those_of_jobs(host: str, ranks: int, pairs: str) -> None:
    partners = partners_of(pairs, ranks)
    told = run(host, ranks, partners).statistics
    assert [rank.rank for rank in told] == list(range(ranks))
    predicted = of_components(make_plan(ranks, partners))
    for rank in told:
        assert (rank.counts["ranks_of_the_node"], rank.counts["messages_fastboxes"]) == (ranks, partners)
        for name, row in predicted.items():
            bytes = row["leader" if rank.rank == 0 else "rank"]
            assert bytes == pytest.approx(held(rank, name), rel=0.05), (rank.rank, name)


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_windows_and_communicators_have_their_own(host: str, ranks: int) -> None:
    for window, communicators in ((MIB, 0), (0, 3)):
        told = run(host, ranks, 1, COLLECTIVES, window, communicators).statistics
        more = {"windows": window} if window else {"communicators": communicators}
        plan, less = of_components(make_plan(ranks, 1, **more)), of_components(make_plan(ranks, 1))
        assert plan["control"]["rank"] > 1.1 * less["control"]["rank"]
        for rank in told:
            assert held(rank, "windows") == window
            for name, row in plan.items():
                bytes = row["leader" if rank.rank == 0 else "rank"]
                if name != "segment" or not window:
                    assert bytes == pytest.approx(held(rank, name), rel=0.05), (rank.rank, name)


def test_many_cores_that_stream_get_the_fast_memory() -> None:
    plan = make_plan(64, 63, "knl-64", heap=64 * MIB)
    assert plan["advice"] == "fastboxes:bandwidth;copy-buffers:bandwidth;control:latency;heap:bandwidth"
    assert (plan["home"], plan["fast"]) == (0, 1)
    for cell in plan["worth"]:
        assert cell["slow_ns"] > cell["fast_ns"] or cell["bytes"] < MIB, cell
    for name in ("fastboxes", "copy-buffers", "heap"):
        assert plan["advised"][name]["slow_ns"] > plan["advised"][name]["fast_ns"]


def test_what_does_not_fit_is_limited_to_what_does() -> None:
    plan = make_plan(64, 63, "knl-64", heap=GIB)
    most = int(re.search(r"heap:bandwidth,max=(\d+)M$", plan["advice"])[1]) * MIB
    own = sum(row["rank"] for row in plan["components"] if row["name"] in ("fastboxes", "copy-buffers"))
    assert 64 * (own + most) <= 16 * GIB < 64 * (own + most + 2 * MIB)
    assert plan["advised"]["heap"]["fits"] == most


def test_few_cores_gain_nothing_from_bandwidth_that_they_cannot_use() -> None:
    plan = make_plan(3, 2, "knl-64", heap=64 * MIB)
    assert "bandwidth" not in plan["advice"] and "heap" not in plan["advice"]
    assert all(cell["slow_ns"] == cell["fast_ns"] for cell in plan["worth"])


def test_sockets_have_their_own(tmp_path: Path) -> None:
    machine = tmp_path / "machine.toml"
    machine.write_text(MACHINE)
    plan = make_plan(8, 7, str(machine), heap=40 * MIB)
    assert (plan["home"], plan["fast"]) == (0, 2)
    # Four ranks share 100 MiB; those of the other socket have their own memory, which is their fastest.
    most = int(re.search(r"heap:bandwidth,max=(\d+)M$", plan["advice"])[1])
    assert 18 <= most < 25
    alike = machine.read_text().replace("200000", "20000")
    machine.write_text(alike)
    assert make_plan(8, 7, str(machine), heap=40 * MIB)["advice"] == ""
    assert make_plan(8, 7, "epyc-2x96")["advice"] == ""
    machine.write_text(MACHINE.split("[numa.0]")[0])
    unknown = make_plan(8, 7, str(machine))
    assert "describes no NUMA nodes" in unknown["trouble"] and not unknown["nodes"] and not unknown["advice"]
    machine.write_text(MACHINE.replace("[0, 3]", "[3, 5000]"))
    with pytest.raises(ValueError, match=r"numa\.0"):
        make_plan(8, 7, str(machine))


@pytest.mark.skipif(SANITIZED, reason="there is no shared heap")
def test_a_job_is_planned_from_its_statistics(tmp_path: Path) -> None:
    program = [compile_c("mpich", "partners.c"), "2", str(COLLECTIVES)]
    job = launch("mpich", 3, program, env={VARIABLE: f"{tmp_path}/%r.json"})
    assert job.returncode == 0 and "good" in job.stdout, job.text[-3000:]
    ranks = read_statistics(tmp_path)
    plan = plan_job(ranks, "knl-64")
    assert (plan["ranks"], plan["partners"]) == (3, 2)
    for row in plan["components"]:
        if row["name"] in COMPUTED:
            most = max(held(rank, row["name"]) for rank in ranks)
            assert row["measured"] == plan["measured"][row["name"]] == most
    assert plan["measured"]["heap"] >= MIB
    (cell,) = (cell for cell in plan["worth"] if cell["op"] == "allreduce")
    assert (cell["bytes"], cell["calls"]) == (800000, COLLECTIVES)
    for place in (tmp_path, tmp_path / "0.json"):  # all ranks, and one alone
        shown = nearfield("plan", "--job", str(place), "--machine", "knl-64")
        assert shown.returncode == 0 and "seconds saved" in shown.stdout and "measured" in shown.stdout
    assert plan_job(ranks[:1], "knl-64")["ranks"] == 3


def test_the_command() -> None:
    arguments = ("plan", "--ranks", "64", "--machine", "knl-64", "--pairs", "neighbours:8", "--heap", "64M")
    shown = nearfield(*arguments)
    assert shown.returncode == 0, shown.stderr
    for words in ("each sends to 8", "as the cost model estimates", "copy buffers of rounds", "alltoall"):
        assert words in shown.stdout
    plan = json.loads(nearfield(*arguments, "--json").stdout)
    assert f'NEARFIELD_MEMORY="{plan["advice"]}"' in shown.stdout
    info = json.loads(nearfield("info", "--json", NEARFIELD_MEMORY=plan["advice"]).stdout)
    assert not info["placement"]["complaints"], "the advice is what ranks understand"
    asked = {row["name"]: row["asked"] for row in info["placement"]["components"]}
    assert asked["fastboxes"] == "bandwidth"
    here = nearfield("plan")
    assert here.returncode == 0 and "NUMA node 0" in here.stdout
    for wrong, why in (
        (("--pairs", "many"), "neighbours:N"),
        (("--job", "/dev/null"), "is not a file that NEARFIELD_STATS_FILE has written"),
        (("--job", "/dev/shm"), "run the job with NEARFIELD_STATS_FILE="),
        (("--job", "/nowhere"), "cannot read"),
        (("--machine", "cray"), "knl-64"),
    ):
        failed = nearfield("plan", *wrong)
        assert failed.returncode == 2 and why in failed.stderr
