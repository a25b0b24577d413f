"""Tests that run beside each other have a directory for temporary files each.

Open MPI's launchers share theirs otherwise, and one that ends removes what another one has just begun to use: about one job
in 200 did not start, or hung.
"""

import os
import tempfile
from pathlib import Path

if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    own = Path(tempfile.gettempdir()) / f"nearfield-{worker}-{os.getuid()}"
    own.mkdir(exist_ok=True)
    own.chmod(0o1777)  # some tests become another user
    os.environ["TMPDIR"] = str(own)
    tempfile.tempdir = None
