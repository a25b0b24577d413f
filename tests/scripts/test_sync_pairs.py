"""scripts/sync_pairs.py: which releases and acquires it takes for a pair."""

from pathlib import Path
from types import ModuleType

import pytest

from tests.scripts.loading import load

RELEASE = "word.store(1, std::memory_order_release);"
ACQUIRE = "while (!word.load(std::memory_order_acquire)) {}"
GOOD = f"{RELEASE}  // SYNC: word\n// SYNC: word; seen by the reader\n{ACQUIRE}\n"


@pytest.fixture
def pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, for an empty tree."""
    module = load("scripts/sync_pairs.py", monkeypatch)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


def look(pairs: ModuleType, text: str, folder: str = "engine/team") -> int:
    path = pairs.ROOT / folder / "team.cpp"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return pairs.main([])


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        "gate.fetch_add(1, std::memory_order_acq_rel);  // SYNC: gate\n",
        f"{GOOD}// SYNC: word\nif (one)\n  two(word.load(std::memory_order_acquire));\n",
        f"{RELEASE}  // SYNC: one, two\n{ACQUIRE}  // SYNC: one\n{ACQUIRE}  // SYNC: two\n",
        "word.load(std::memory_order_relaxed);  // as with memory_order_acquire\n",
    ],
    ids=["pair", "both in one", "of several lines", "two names", "unordered"],
)
def test_pairs_pass(pairs: ModuleType, text: str) -> None:
    assert look(pairs, text) == 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"{RELEASE}  // SYNC: word\n", "word is of this release alone"),
        (f"{ACQUIRE}  // SYNC: word\n", "word is of this acquire alone"),
        (f"{RELEASE}  // SYNC: word\n{ACQUIRE}  // SYNC: other\n", "word is of this release alone"),
        (f"{GOOD}{ACQUIRE}\n", "team.cpp:4: an ordered access without a name"),
        (f"{GOOD}int word;  // SYNC: word\n\n\n\n", "no ordered access belongs"),
    ],
    ids=["release", "acquire", "names differ", "no name", "no access"],
)
def test_what_is_alone_fails(
    pairs: ModuleType, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    text = text.replace("int word;", "\n\n\n\nint word;")
    assert look(pairs, text) == 1
    assert told in capsys.readouterr().err


def test_folders_that_have_no_names_yet_pass_and_are_counted(
    pairs: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert look(pairs, f"{RELEASE}\n", "engine/newest") == 0
    assert pairs.main(["--missing"]) == 0
    assert capsys.readouterr().out == "engine/newest/team.cpp:1\nengine/newest 1\n"
