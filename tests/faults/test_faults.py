"""Seeded faults stay what they are: each patch applies, and says what it breaks and which tests find it."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.faults.seeded import AREAS, PATCHES, PRESETS, Finder, all_faults, read_fault

ROOT = Path(__file__).resolve().parents[2]
ALL = sorted(PATCHES.glob("*.patch"))


def test_there_are_enough_of_every_area() -> None:
    areas = [fault.area for fault in all_faults()]
    assert len(areas) >= 30
    assert all(areas.count(area) >= least for area, least in zip(AREAS, (16, 8, 3, 3), strict=True))


@pytest.mark.parametrize("patch", ALL, ids=lambda patch: patch.stem)
def test_a_patch_applies_and_changes_the_product_alone(patch: Path) -> None:
    done = subprocess.run(["git", "apply", "--check", patch], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    changed = re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.MULTILINE)
    assert changed and all(
        file.startswith(("engine/", "mpi/", "heap/", "nearfield/", "tools/")) for file in changed
    )


def there_is(finder: Finder) -> bool:
    """Whether what the finder names is there; what its filters leave only a run tells."""
    if finder.kind == "pytest":
        return all(
            (ROOT / word.partition("::")[0]).exists() for word in finder.words if word.startswith("tests")
        )
    if finder.kind == "gtest":
        programs = [file.stem for file in ROOT.glob("tests/**/*_test.cpp")]
        return finder.words[0] in PRESETS and any(re.fullmatch(finder.words[1], name) for name in programs)
    return finder.kind == "proof" and (ROOT / f"tests/engine/model/{finder.words[0]}_test.cpp").exists()


@pytest.mark.parametrize("patch", ALL, ids=lambda patch: patch.stem)
def test_a_header_is_complete(patch: Path) -> None:
    fault = read_fault(patch)
    assert fault.broken and fault.shows and fault.kind
    assert all(map(there_is, fault.finders)), fault.finders
