"""How well the model and the trials choose: every candidate of a cell forced, and the choice, in turn in one job.

A cell has op, ranks, bytes, line_ns; model, chosen and best (the algorithms that the model and the trials choose, and the fastest one);
model_ratio and ratio (the times of the first two, divided by the fastest one's); us, forced_us and estimated_us (microseconds by algorithm);
trials (the time that trials lost, divided by that of 10,000 calls). Buffers are used (bench/own_work.hpp). Calls are counted
(NEARFIELD_STATS_FILE), which slows all algorithms alike. The time of the chosen algorithm is that of its forced runs, to exclude noise.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nearfield.bench import stop
from nearfield.hosts import Host, launch_command, launcher_environment
from nearfield.libraries import program
from nearfield.model import predict
from nearfield.statistics import PATTERN, VARIABLE, read_statistics

Cell = dict[str, Any]
WRONG = 1.3
WORTH = 4.0  # algorithms whose estimate is beyond so many times the best are not run
LEAST = 0.05  # seconds for the candidates of a cell
BEGINNING = 1.5  # seconds of a job that are nobody's
GRACE = 10  # seconds beyond its limit that a job has to start


def measure(
    host: Host, op: str, ranks: int, sizes: list[int], seconds: float, limit: float | None = None
) -> list[Cell]:
    """Measures the cells of one job. With `limit`, only those that are complete when `limit` seconds and GRACE have passed.

    `seconds`: time for all candidates of a cell. Raises ValueError if the job fails.
    """
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryFile("w+") as written:
        job = subprocess.Popen(
            _worker_command(host, op, ranks, sizes, seconds),
            env=launcher_environment(host, nearfield=True) | {VARIABLE: f"{directory}/{PATTERN}"},
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        late, text = False, ""
        try:
            text = job.communicate(timeout=limit and max(limit, 0) + GRACE)[1]
        except subprocess.TimeoutExpired:
            late = True
        finally:
            stop(job)
        if job.returncode and not late:
            raise ValueError(f"{op} on {ranks} ranks failed:\n{text[-2000:]}")
        written.seek(0)
        rows = [json.loads(line) for line in written if line.startswith("{") and line.endswith("}\n")]
        decisions = [] if late else read_statistics(Path(directory))[0].decisions
    whole = {row["bytes"] for row in rows if "done" in row}
    cells = [
        cell_of(op, ranks, size, [row for row in rows if row["bytes"] == size])
        for size in sizes
        if size in whole
    ]
    for one in reversed(decisions):  # of the first trials
        for cell in cells:
            if (one.operation, one.ranks, one.bytes) == (op, ranks, cell["bytes"]):
                cell["trials"] = one.seconds_beyond_best * 1e6 / (cell["us"] * 10000)
    return cells


def _worker_command(host: Host, op: str, ranks: int, sizes: list[int], seconds: float) -> list[str]:
    """The command of a job that runs, at each size, the promising algorithms of all sizes and the chooser in turns."""
    names: dict[str, None] = {}
    for cell in predict(op, [ranks], sizes):
        least = min(cell["ns"].values())
        names |= {name: None for name, ns in cell["ns"].items() if ns <= WORTH * least}
        names[cell["staged"]] = None
    words = [op, ",".join(map(str, sizes)), "tune", str(seconds), ",".join([*names, "auto"])]
    return launch_command(host, ranks, [str(program(f"nearfield-bench-{host.abi}")), *words])


def cell_of(op: str, ranks: int, size: int, rows: list[Cell]) -> Cell:
    """Makes a cell out of the measured rows and the model's estimates."""
    times = {row["algorithm"]: row for row in rows if "median" in row}
    auto = times.pop("auto")
    forced = {name: row["median"] for name, row in times.items()}
    (predicted,) = predict(op, [ranks], [size])
    estimates = {name: ns / 1000 for name, ns in predicted["ns"].items() if name in forced}
    by_model = (
        predicted["chosen"] if predicted["chosen"] in forced else min(estimates, key=estimates.__getitem__)
    )
    best = min(forced, key=forced.__getitem__)
    return {
        "op": op,
        "ranks": ranks,
        "bytes": size,
        "line_ns": auto["line_ns"],
        "model": by_model,
        "chosen": auto["ran"],
        "best": best,
        "model_ratio": forced[by_model] / forced[best],
        "ratio": forced.get(auto["ran"], auto["median"]) / forced[best],
        "us": auto["median"],
        "forced_us": forced,
        "estimated_us": estimates,
        "trials": 0.0,
    }


def shares(ratios: Iterable[float]) -> str:
    """A text: how many cells are within 5 %, 10 % and the limit WRONG of the fastest."""
    found = list(ratios)
    within = [
        f"{sum(ratio <= limit for ratio in found)} within {limit - 1:.0%}" for limit in (1.05, 1.1, WRONG)
    ]
    return f"of {len(found)} cells {', '.join(within)} of the fastest"
