"""Nearfield's collectives and their algorithms, out of the library's own tables."""

import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Ranks get the table from whoever launches them: looking at the machine takes 15 ms, for
# nine ranks on two CPUs 60.
KEPT = "TABLE_OF_ALGORITHMS"
if KEPT not in os.environ:
    probe = subprocess.run(
        [ROOT / "build/release/bin/nearfield-probe"], capture_output=True, text=True, check=True
    )
    os.environ[KEPT] = json.dumps(json.loads(probe.stdout)["algorithms"])
TABLE = json.loads(os.environ[KEPT])
ALGORITHMS = {op: [row["name"] for row in rows] for op, rows in TABLE.items()}
OPERATIONS = list(ALGORITHMS)
# Those that load or store peers' buffers.
DIRECT = {row["name"] for rows in TABLE.values() for row in rows if row["direct"]}
