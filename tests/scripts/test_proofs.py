"""scripts/proofs.py: what makes a proof stale, and what its record says."""

import json
from pathlib import Path
from types import ModuleType

import pytest

from tests.scripts.loading import load

SOURCE = """// Says what it is.
#define LINES 4  /* of a ring */
int put(int word) { return word + LINES; }
const char* name = "a // b";
"""


@pytest.fixture
def proofs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, for a checkout with the protocols `lock` and `ring`."""
    module = load("scripts/proofs.py", monkeypatch)
    (tmp_path / "engine/ring").mkdir(parents=True)
    (tmp_path / module.MODELS).mkdir(parents=True)
    (tmp_path / "engine/lock.hpp").write_text("Atomic<int> ticket;\n")
    (tmp_path / "engine/ring/ring.hpp").write_text(SOURCE)
    for protocol in ("lock", "ring"):
        (tmp_path / module.MODELS / f"{protocol}_test.cpp").write_text("// Its model.\n")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "PROTOCOLS", {"lock": ("engine/lock.hpp",), "ring": ("engine/ring",)})
    monkeypatch.setattr(module, "WITHOUT_A_MODEL", ())
    for name in module.PROTOCOLS:
        module.write(name, module.digest_of(name), {})
    return module


def test_nothing_stale_passes(proofs: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert [proofs.main([f"--{doing}"]) for doing in ("check", "rerun", "renew")] == [0, 0, 0]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("// Says what it is.\n", "", False),
        ("/* of a ring */", "/* of\n a line */", False),
        ("int put(int word) {", "int  put( int word )\n{", False),
        ("int put", "long put", True),
        ("word + LINES", "word - LINES", True),
        ("LINES 4", "LINES 40", True),
        ("a // b", "a // c", True),
    ],
)
def test_code_counts_and_comments_do_not(proofs: ModuleType, old: str, new: str, counts: bool) -> None:
    assert old in SOURCE
    (proofs.ROOT / "engine/ring/ring.hpp").write_text(SOURCE.replace(old, new, 1))
    assert proofs.stale(proofs.read()) == (["ring"] if counts else [])


@pytest.mark.parametrize("file", ["engine/ring/ring.hpp", "engine/ring/room.cpp", "{MODELS}/ring_test.cpp"])
def test_a_changed_source_fails_with_what_to_do(
    proofs: ModuleType, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (proofs.ROOT / file.format(MODELS=proofs.MODELS)).write_text("int other;\n")
    assert proofs.main(["--check"]) == 1
    assert "scripts/proofs.py --renew ring\n" in capsys.readouterr().out


def test_shared_words_have_a_protocol(proofs: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    (proofs.ROOT / "engine/gate.hpp").write_text("Atomic<int> arrived;\n")
    assert proofs.main(["--check"]) == 1
    assert "engine/gate.hpp" in capsys.readouterr().out


def report(*texts: str) -> dict:
    explored = {f"explored {number}": text for number, text in enumerate(texts)}
    return {
        "testsuites": [
            {"testsuite": [{"name": "Excludes", "classname": "Lock", "status": "RUN", **explored}]}
        ]
    }


def test_explorations_of_one_kind_are_one_line(proofs: ModuleType) -> None:
    plain = "members=2 memory=x86 preemptions=any mutation=none"
    explored = report(
        f"{plain} states=10 runs=7 naps=0",
        f"{plain} states=5 runs=3 naps=1",
        "members=3 memory=language preemptions=2 mutation=no_release states=4 runs=2 naps=0 found=read too early",
    )
    assert proofs.explored(explored) == {
        "Lock.Excludes": [
            "2 members, x86, any preemptions: 2 explored, 15 states in 10 runs, at most 1 naps; none fails",
            "3 members, language, 2 preemptions, no_release: "
            "1 explored, 4 states in 2 runs; found: read too early (1)",
        ]
    }


@pytest.fixture
def model(proofs: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program of `ring`, which has no build; tests write it."""
    monkeypatch.setattr(proofs, "build", lambda directory, protocols: None)
    program = proofs.ROOT / "bin/model_ring"
    program.parent.mkdir()
    return program


def write_model(program: Path, states: int, fails: bool) -> None:
    text = json.dumps(
        report(f"members=2 memory=x86 preemptions=any mutation=none states={states} runs=1 naps=0")
    )
    program.write_text(
        f"#!/bin/sh\nfor a; do case $a in *=json:*) echo '{text}' > ${{a#*=json:}};; esac; done\n"
        f"echo what it says\nexit {int(fails)}\n"
    )
    program.chmod(0o755)


def test_a_renewed_proof_is_compared_with_its_record(
    proofs: ModuleType, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(doing: str) -> int:
        return proofs.main([f"--{doing}", "ring", "--build", str(proofs.ROOT)])

    (proofs.ROOT / "engine/ring/ring.hpp").write_text("int other;\n")
    write_model(model, states=10, fails=False)
    assert run("rerun") == 1, "holds, and has not been renewed"
    assert "--renew ring" in capsys.readouterr().out
    assert run("renew") == 0
    assert run("rerun") == 0
    write_model(model, states=9, fails=False)
    assert run("rerun") == 1, "explores less than the record says"
    assert "9 states" in capsys.readouterr().out


def test_what_does_not_hold_is_not_recorded(
    proofs: ModuleType, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (proofs.ROOT / proofs.RECORD).read_text()
    write_model(model, states=10, fails=True)
    assert proofs.main(["--renew", "ring", "--build", str(proofs.ROOT)]) == 1
    assert "what it says" in capsys.readouterr().out
    assert (proofs.ROOT / proofs.RECORD).read_text() == before
