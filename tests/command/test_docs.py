"""The documentation is short, its links lead somewhere, files that it names are there, and generated pages are what their sources say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FOR_USERS = [ROOT / "README.md", *sorted((ROOT / "docs/user").glob("*.md"))]
LONGEST = 40  # words of a sentence
BY_HAND = 1500  # lines of docs that are written by hand
MADE = re.compile(r"<!-- [^\n]*: made by .*?<!-- end -->\n", re.DOTALL)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """Of headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_are_named_are_there(page: Path) -> None:
    """In prose a file stands with its folder, from the root of the checkout on."""
    folders = "engine|mpi|bench|nearfield|scripts|tests|tools|docs|examples|heap"
    for name in re.findall(
        rf"(?<![\w/.<~-])((?:{folders})/[\w./-]*\.(?:cpp|hpp|def|py|md|c|h|sh|svg|json|toml))\b",
        page.read_text(),
    ):
        assert (ROOT / name).exists(), name


def test_pages_that_the_code_names_are_there() -> None:
    folders = (
        "engine",
        "heap",
        "mpi",
        "nearfield",
        "include",
        "bench",
        "scripts",
        "tests",
        "tools",
        "packaging",
    )
    listed = subprocess.run(["git", "ls-files", "--", *folders], cwd=ROOT, capture_output=True, text=True)
    for file in listed.stdout.split():
        if (
            not file.startswith(("bench/results/", "tests/faults/", "tests/scripts/"))
            and (ROOT / file).is_file()
        ):
            for name in re.findall(
                r"\bdocs/[\w/.-]+\.(?:md|svg)\b", (ROOT / file).read_text(errors="ignore")
            ):
                assert (ROOT / name).exists(), f"{file}: {name}"


def sentences(page: Path) -> list[str]:
    """Of paragraphs, items of lists and cells of tables; code in a line is a word."""
    text = re.sub(r"```.*?```", "", MADE.sub("", page.read_text()), flags=re.DOTALL)
    text = re.sub(r"^(?:\t| {4,}).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"`[^`]*`", "Code", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:[-|]|\d+\. ))|\|", text)
    return [one for part in parts for one in re.split(r"(?<=[.!?])[\s*]+(?=[A-Z\d`*])", part)]


@pytest.mark.parametrize("page", FOR_USERS, ids=name_of)
def test_sentences_are_short(page: Path) -> None:
    long = [one for one in sentences(page) if len(re.findall(r"[\w'./-]*\w[\w'./-]*", one)) > LONGEST]
    assert not long


def test_the_documentation_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 60
    by_hand = 0
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if page.parent.name != "results":  # bench/pages.py writes these
            by_hand += len(MADE.sub("", page.read_text()).splitlines())
    assert by_hand <= BY_HAND


@pytest.mark.parametrize("script", ["bench/pages.py", "scripts/reference.py"])
def test_generated_pages_are_what_their_sources_say(script: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / script, "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_every_result_has_a_source() -> None:
    text = (ROOT / "bench/results/sources.toml").read_text().partition("[files]")[2]
    for name in re.findall(r"^([\w-]+) = ", text, re.MULTILINE):
        assert (ROOT / f"bench/results/{name}.json").exists(), name
