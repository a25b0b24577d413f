"""What the documentation says about files is so."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


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
