"""What the documentation says about files is so."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SOURCES = (".cpp", ".hpp", ".c", ".h", ".def", ".py")


def sections() -> dict[str, str]:
    """The parts of CONTRIBUTING.md that have an example, by their titles."""
    parts = (ROOT / "CONTRIBUTING.md").read_text().split("\n## ")[1:]
    return {part.splitlines()[0]: part for part in parts}


@pytest.mark.parametrize("title", sections())
def test_lists_of_files_are_complete(title: str) -> None:
    text = sections()[title]
    example = re.search("^Example: `(.+)`$", text, re.MULTILINE)
    assert example, title
    word = example[1].lower()
    lines = re.findall(r"^- ([^:\n]+)", text, re.MULTILINE)
    named = {name.strip() for line in lines for name in line.split(",")}
    assert named
    for name in named:
        assert word in (ROOT / name).read_text().lower(), f"{name} has no {word}"
    having = {
        str(path.relative_to(ROOT))
        for folder in ("engine", "mpi", "bench", "nearfield", "scripts")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in SOURCES and word in path.read_text().lower()
    }
    assert having <= named, f"CONTRIBUTING.md does not name {having - named}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        assert "://" in link or (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_are_there(page: Path) -> None:
    """In prose a file stands with its folder, from the root of the checkout on."""
    folders = "engine|mpi|bench|nearfield|scripts|tests|tools|docs|examples|heap"
    for name in re.findall(
        rf"(?<![\w/.<~-])((?:{folders})/[\w./-]*\.(?:cpp|hpp|def|py|md|c|h|sh|svg))\b", page.read_text()
    ):
        assert (ROOT / name).exists(), name
