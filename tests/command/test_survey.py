"""`nearfield survey`: which placements and steps there are, what leaves the machine, that a survey ends, goes on and is shown."""

import json
import string
import time
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearfield.places import Place
from nearfield.survey import archive
from nearfield.survey.measuring import COLLECTIVES, OF_MEMORY, fits, placements, steps_for
from tests.command.calling import nearfield
from tests.command.pages import check_page


def machine_of(packages: int, caches: int, cores: int, threads: int) -> list[Place]:
    """CPUs as Linux numbers them: the first threads of all cores, then the second ones."""
    of_package, all_cores = caches * cores, packages * caches * cores
    return [
        Place(cpu, core, core // cores * cores, core // of_package * of_package)
        for cpu in range(threads * all_cores)
        for core in [cpu % all_cores]
    ]


def test_placements_of_a_large_machine() -> None:
    found = placements(machine_of(2, 12, 8, 2), [8, 384])
    assert [(one.name, len(one.cpus)) for one in found] == [
        ("2 ranks, one cache", 2),
        ("2 ranks, one package", 2),
        ("2 ranks, one machine", 2),
        ("2 ranks, one core", 2),
        ("192 ranks, all cores", 192),
        ("384 ranks, all CPUs", 384),
        ("8 ranks on 384 CPUs", 384),
    ]


def test_steps_fit_into_memory() -> None:
    found, free = placements(machine_of(2, 12, 8, 1)), 4e9
    steps = steps_for(found, ["mpich", "openmpi"], free=free)
    assert len({step.name for step in steps}) == len(steps)
    assert {step.op for step in steps if step.kind == "calls"} == {*COLLECTIVES, "latency"}
    assert {step.host for step in steps if step.kind == "choices"} == {"mpich"}
    for step in steps:
        for size in step.sizes:
            assert step.op == "latency" or fits(step.op, size, step.placement, free)
            if step.op == "alltoall":
                assert 4 * step.placement.ranks**2 * size <= OF_MEMORY * free
    assert not [step for step in steps_for(found, []) if step.op]


words = st.text(string.ascii_letters + string.digits + ".-_ ", min_size=1, max_size=12)


@given(words, words, st.sampled_from(["cell-17", "anna", "srv.example.org"]))
def test_texts_with_names_stay(before: str, after: str, name: str) -> None:
    for text in (f"{before} {name} {after}", name.upper(), f"({name})"):
        assert archive.without_names({"hosts": [text]}, [name]) == {"hosts": [archive.LEFT_OUT]}


@pytest.mark.parametrize(
    "text",
    ["built in /home/anna/mpi", "~/mpi", "anna@example", "10.1.2.3", "prefix=/opt/x", "02:42:ac:11:00:02"],
)
def test_texts_with_paths_and_addresses_stay(text: str) -> None:
    assert archive.tells(text, [])


@pytest.mark.parametrize(
    "text", ["4.3.1", "Intel(R) Xeon(R) CPU @ 2.30GHz", "L3 32768K of CPUs 0-7", "mpiexec (OpenRTE) 4.1.4"]
)
def test_usual_texts_go(text: str) -> None:
    assert not archive.tells(text, ["cell-17", "anna"])


def test_what_is_not_named_does_not_leave() -> None:
    step = {
        "kind": "calls",
        "rows": [{"op": "bcast", "median": 1.0, "machine": "of anna", "version": "/opt"}],
    }
    assert archive.about_step(step | {"text": "anna"}) == {
        "kind": "calls",
        "rows": [{"op": "bcast", "median": 1.0}],
    }
    about = archive.about_machine(
        {"model": "Zen of /home/anna", "kernel": "Linux 6.1.0-anna-17", "name": "cell-17"}
    )
    assert about == {"model": archive.LEFT_OUT, "kernel": "6.1.0"}


def surveyed(out: Path, *words: str) -> tuple[dict, str]:
    """The archive of a survey, and what was said."""
    done = nearfield("survey", "--out", str(out), *words)
    assert done.returncode == 0, done.stderr
    return archive.read(Path(done.stdout.split(": README")[0])), done.stderr


def test_a_survey_ends_goes_on_and_is_shown(tmp_path: Path) -> None:
    out, words = tmp_path / "survey", ("--hosts", "mpich", "--op", "barrier")
    begun = time.monotonic()
    first, said = surveyed(out, *words, "--minutes", "0.02")
    assert time.monotonic() - begun < 60  # no step begins after 1.2 s; one that has begun may take some more
    assert first["missing"] and "steps are missing" in said and "minutes left" in said
    done = set(first["steps"])
    stamps = {path: path.stat().st_mtime_ns for path in (out / "steps").iterdir()}
    # However long the first steps took, there is time for more.
    minutes = json.loads((out / "survey.json").read_text())["used"] / 60 + 0.1
    second, said = surveyed(out, *words, "--minutes", f"{minutes:.3f}")
    assert "continues the survey" in said and done < set(second["steps"])
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())
    (path,) = out.glob("*.zip")
    with zipfile.ZipFile(path) as packed:
        assert sorted(packed.namelist()) == ["README.txt", "steps.json", "survey.json"]
        text = "".join(packed.read(name).decode() for name in ("steps.json", "survey.json"))
        assert "does not contain" in packed.read("README.txt").decode()
    assert str(tmp_path) not in text and not archive.tells(text.replace('"', " "), [])
    page = tmp_path / "page.html"
    shown = nearfield("survey", "--report", str(path), str(path), "--out", str(page))
    assert shown.returncode == 0, shown.stderr
    check_page(page, second["machine"]["model"], "Machines compared", "How far are CPUs")
    other = nearfield("survey", "--out", str(out), "--hosts", "openmpi")
    assert other.returncode == 2 and "another hosts" in other.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("survey",), "--out names a directory"),
        (("survey", "--report"), "--report"),
        (("survey", "--report", "nowhere.zip"), "nowhere.zip"),
        (("survey", "a.zip", "--out", "x"), "a.zip"),
        (("survey", "--out", "x", "--op", "alltoallv"), "allreduce"),
        (("survey", "--out", "x", "--hosts", "cray"), "mpich"),
    ],
)
def test_wrong_words_are_refused(
    words: tuple[str, ...], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = nearfield(*words)
    assert done.returncode == 2 and why in done.stderr
    assert not list(tmp_path.iterdir())
