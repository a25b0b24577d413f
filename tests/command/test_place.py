"""`nearfield place`: orders of ranks beside the best there are, traffic out of reports, what launchers are told and do."""

import itertools
import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearfield import place
from nearfield.hosts import environment_of
from nearfield.mapping import Problem, best_mapping
from nearfield.places import Place
from tests.command.calling import nearfield
from tests.command.test_survey import machine_of
from tests.mpi.jobs import HOSTS, compile_c, environment, hosts

COSTS = (40.0, 60.0, 150.0, 220.0)  # of a unit of traffic, by what CPUs have in common


def problem_of(
    ranks: int, weights: dict[tuple[int, int], float], places: list[Place], costs=COSTS
) -> Problem:
    """Ranks whose pairs have so much for each other."""
    traffic: list[dict] = [{} for _ in range(ranks)]
    for (one, other), weight in weights.items():
        traffic[one][other] = traffic[other][one] = tuple(weight * cost for cost in costs)
    return Problem(traffic, places)


@st.composite
def small_problems(draw: st.DrawFn) -> Problem:
    places = machine_of(
        *draw(st.sampled_from([(1, 2, 2, 1), (2, 2, 1, 1), (2, 1, 3, 1), (1, 3, 2, 1), (1, 1, 3, 2)]))
    )
    ranks = draw(st.integers(2, min(6, len(places))))
    pairs = list(itertools.combinations(range(ranks), 2))
    weights = draw(st.lists(st.integers(0, 20), min_size=len(pairs), max_size=len(pairs)))
    return problem_of(ranks, {pair: w for pair, w in zip(pairs, weights, strict=True) if w}, places)


@settings(max_examples=60, deadline=None)
@given(small_problems())
def test_small_jobs_are_placed_as_well_as_by_trying_all(problem: Problem) -> None:
    found = best_mapping(problem, seconds=30)
    assert len(set(found)) == problem.ranks and set(found) <= set(range(len(problem.places)))
    least = min(problem.cost(at) for at in itertools.permutations(range(len(problem.places)), problem.ranks))
    assert problem.cost(found) <= least * (1 + 1e-9)


# ---- reports
def report(tmp_path: Path, **world: object) -> Path:
    """A report of four ranks, of which 0 and 2, 1 and 3 have much for each other."""
    sent = [
        {"rank": a, "to": b, "messages": 1000, "bytes": 8000} for a, b in ((0, 2), (2, 0), (1, 3), (3, 1))
    ]
    about = {"program": "./app", "size": 4, "sent": sent, "rows": [], "communicators": []}
    about["ranks"] = [{"rank": rank, "host": "a"} for rank in range(4)]
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"format": 1, "worlds": [about | world]}))
    return path


@pytest.fixture
def machine(tmp_path: Path) -> str:
    """Two packages of two cores; the first two CPUs of Linux's numbers are one package."""
    path = tmp_path / "machine.toml"
    path.write_text("line = 200\nnear = 50\ncopy = 0.02\ncpus = 4\ncores = 2\nsockets = 2\n")
    return str(path)


def test_partners_come_near_and_the_gain_is_the_models(tmp_path: Path, machine: str) -> None:
    path, ranks = report(tmp_path), tmp_path / "ranks"
    done = nearfield("place", str(path), "--machine", machine, "--json", "--rankfile", str(ranks))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    of = found["cpus"]
    assert sorted(of) == [0, 1, 2, 3] and of[0] // 2 == of[2] // 2 and of[1] // 2 == of[3] // 2
    # 2000 messages of 8 B for each pair: a line and the copy, which is four times as slow where lines are.
    assert found["seconds"] == pytest.approx(2 * 2000 * (50 + 8 * 0.02) / 1e9)
    assert found["seconds_in_order"] == pytest.approx(4 * found["seconds"])
    assert found["launchers"]["mpich"] == "-bind-to user:" + ",".join(map(str, of))
    assert ranks.read_text().splitlines() == [
        f"rank {rank}=localhost slot={cpu}" for rank, cpu in enumerate(of)
    ]
    said = nearfield("place", str(path), "--machine", machine).stdout
    assert "0.25 of it" in said and "I_MPI_PIN_PROCESSOR_LIST" in said and "--rankfile FILE" in said


@pytest.mark.parametrize(
    ("world", "words", "why"),
    [
        ({"sent": []}, (), "every order is equally good"),
        ({"size": 5}, (), "there are 5 ranks and only 4 CPUs"),
        ({"ranks": [{"rank": n, "host": str(n)} for n in range(4)]}, (), "4 nodes"),
        ({}, ("--world", "2"), "no number 2"),
    ],
)
def test_what_cannot_be_placed_is_said(
    world: dict, words: tuple[str, ...], why: str, tmp_path: Path, machine: str
) -> None:
    done = nearfield("place", str(report(tmp_path, **world)), "--machine", machine, *words)
    assert done.returncode == 2 and why in done.stderr


def test_a_thread_of_each_core_comes_first() -> None:
    places = machine_of(2, 1, 2, 2)
    assert [slot.cpu for slot in place.slots_of(places, 4)] == [0, 1, 2, 3]
    assert [slot.cpu for slot in place.slots_of(places, 5)] == [0, 4, 1, 5, 2, 6, 3, 7]


AFFINITY = """import os
rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PMI_RANK"]
print(rank, sorted(os.sched_getaffinity(0)))"""


@pytest.mark.parametrize(
    ("host", "words"),
    [
        *(
            pytest.param(*host.values, host.values[0], marks=host.marks)
            for host in hosts("mpich", "openmpi", "impi")
        ),
        *(
            pytest.param(*host.values, "openmpi 4", marks=host.marks)
            for host in hosts("openmpi", "debian-openmpi")
        ),
    ],
)
def test_launchers_do_as_they_are_told(host: str, words: str, tmp_path: Path) -> None:
    if [one.cpu for one in place.places_here()] != [0, 1]:
        pytest.skip("CPUs 0 and 1 are not all there are")
    found, file = place.Suggestion([1, 0], [1, 0], 1.0, 1.0, 1.0, ""), tmp_path / "ranks"
    file.write_text(place.rankfile(found))
    command = [str(HOSTS[host].mpiexec), *place.words_for(found, file)[words].split()]
    env = environment_of(host) | ({"I_MPI_PIN": "on"} if host == "impi" else {})
    done = subprocess.run(
        [*command, "-n", "2", "python3", "-c", AFFINITY],
        env=environment(host, nearfield=False) | env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["0 [1]", "1 [0]"]


def test_a_programs_report_is_enough(tmp_path: Path, machine: str) -> None:
    page = tmp_path / "page.html"
    launcher = [str(HOSTS["mpich"].mpiexec), "-n", "4"]
    done = nearfield(
        "run",
        "--report",
        str(page),
        "--host",
        "mpich",
        *launcher,
        compile_c("mpich", "recorded.c"),
        "all",
        "0",
    )
    assert done.returncode == 0, done.stderr
    found = nearfield("place", str(page.with_suffix(".json")), "--machine", machine)
    assert found.returncode == 0 and "4 ranks" in found.stdout, found.stderr
