"""What all tests share: which of them run for every change, directories of their own for temporary files, and whether
Hypothesis draws the same examples on every run.

The marker `full` keeps a test out of `make test`; `make test-all` runs it. It is given by hand, and to all repetitions over
hosts and ranks but these: MPICH with the fewest ranks from two on, Open MPI with the most up to five.

Tests that run beside each other have a directory for temporary files each. Open MPI's launchers share theirs otherwise, and
one that ends removes what another one has just begun to use: about one job in 200 did not start, or hung.
"""

import atexit
import os
import shutil
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import settings

FEW, MANY = "mpich", "openmpi"
RANKS_PER_CHANGE = range(2, 6)

# A change must not fail for a reason that it did not bring. `--hypothesis-profile random`, as in `make test-all`, looks further.
settings.register_profile("same", derandomize=True)
settings.register_profile("random", derandomize=False, print_blob=True)
settings.load_profile("same")

if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    own = Path(tempfile.gettempdir()) / f"nearfield-{worker}-{os.getuid()}"
    own.mkdir(exist_ok=True)
    own.chmod(0o1777)  # some tests become another user
    os.environ["TMPDIR"] = str(own)
    tempfile.tempdir = None

# A rank that writes without a buffer writes a line in pieces, and the launcher puts those of other ranks between them.
os.environ.pop("PYTHONUNBUFFERED", None)

# What somebody has calibrated here before decides which algorithms run.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="nearfield-cache-")
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)


def repeats(parameters: dict, numbers: set[int]) -> bool:
    """Whether a test with these parameters is another host's, or of another number of ranks, than one that runs for every
    change, where the test has these numbers of ranks."""
    few = sorted(numbers & set(RANKS_PER_CHANGE) or numbers) or [None]
    return parameters.get("ranks") != {FEW: few[0], MANY: few[-1]}.get(parameters.get("host", FEW), "never")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks repetitions, but those that are marked as what a host has of its own."""
    numbers: dict[str, set[int]] = defaultdict(set)
    varied = [(item, item.nodeid.partition("[")[0]) for item in items if hasattr(item, "callspec")]
    for item, test in varied:
        numbers[test] |= {item.callspec.params["ranks"]} if "ranks" in item.callspec.params else set()
    for item, test in varied:
        if repeats(item.callspec.params, numbers[test]) and not item.get_closest_marker("every_host"):
            item.add_marker(pytest.mark.full)
