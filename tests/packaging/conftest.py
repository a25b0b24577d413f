"""What is packed, once for all tests: the build that is there, as a wheel and below a prefix."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mpi.jobs import ROOT

BUILD = ROOT / "build/release"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, out of what has been compiled already."""
    if not importlib.util.find_spec("scikit_build_core"):
        pytest.fail("scikit-build-core is not installed; run scripts/setup.sh")
    out = tmp_path_factory.mktemp("wheel")
    words = [sys.executable, "scripts/wheel.py", "--build", str(BUILD), "--out", str(out)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = out.iterdir()
    return built


@pytest.fixture(scope="session")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Installed below a prefix, which has moved since."""
    there = tmp_path_factory.mktemp("prefix") / "first"
    words = ["cmake", "--install", str(BUILD), "--strip", "--component", "nearfield", "--prefix", str(there)]
    subprocess.run(words, check=True, capture_output=True)
    return there.rename(there.parent / "second")


def clean_environment() -> dict[str, str]:
    """This environment, without what leads to the checkout."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("NEARFIELD", "PYTHON"))}
    return kept | {"LD_PRELOAD": ""}


def run(*words: object, cwd: Path, **env: str) -> subprocess.CompletedProcess:
    """Runs a command without what leads to the checkout."""
    return subprocess.run(
        list(map(str, words)),
        cwd=cwd,
        env=clean_environment() | env,
        capture_output=True,
        text=True,
        timeout=120,
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All in one process: what is packed is made once, and in one build directory."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("packaging"))
