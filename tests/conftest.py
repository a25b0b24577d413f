"""What all tests share: where their temporary files lie, and whether Hypothesis draws the same examples on every run.

Tests that run beside each other have a directory each. Open MPI's launchers share theirs otherwise, and one that ends removes
what another one has just begun to use: about one job in 200 did not start, or hung.
"""

import os
import tempfile
from pathlib import Path

from hypothesis import settings

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
