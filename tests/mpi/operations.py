"""Nearfield's collectives and their algorithms, out of the library's own tables."""

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = json.loads(
    subprocess.run([ROOT / "build/release/bin/nearfield-probe"], capture_output=True, text=True).stdout
)["algorithms"]
ALGORITHMS = {op: [row["name"] for row in rows] for op, rows in TABLE.items()}
OPERATIONS = list(ALGORITHMS)
# Those that load or store peers' buffers.
DIRECT = {row["name"] for rows in TABLE.values() for row in rows if row["direct"]}
