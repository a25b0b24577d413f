"""How good what trials choose is: every candidate forced, and the choice, in turn in one job; a table on standard output.

Buffers are used (bench/own_work.hpp), and calls are counted (NEARFIELD_STATS_FILE), by which all are slower alike. Ratios are of the chosen algorithm, forced, to the fastest one.

Arguments: numbers of ranks, sizes, host and seconds per cell, e.g. 2,8 8,4K,256K mpich 0.5; with --json FILE the rows.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from nearfield.hosts import find_hosts, launcher_environment
from nearfield.operations import OPERATIONS
from nearfield.statistics import PATTERN, VARIABLE, read_statistics
from nearfield.tune import worker_command
from nearfield.values import parse_ranks, parse_sizes


def main() -> None:
    """Runs all cells; prints the shares of cells within 5 and 10 % of the best, and what trials cost in 10,000 calls."""
    ranks, sizes = parse_ranks(sys.argv[1]), parse_sizes(sys.argv[2])
    host = find_hosts()[sys.argv[3]]
    rows, ratios, costs = [], [], []
    for op in OPERATIONS.split(","):
        if op == "barrier":
            continue
        for p in ranks:
            with tempfile.TemporaryDirectory() as directory:
                done = subprocess.run(
                    worker_command(host, op, p, sizes, float(sys.argv[4]), also=("auto",)),
                    env=launcher_environment(host, nearfield=True) | {VARIABLE: f"{directory}/{PATTERN}"},
                    capture_output=True,
                    text=True,
                    timeout=600,
                )
                if done.returncode:
                    raise SystemExit(done.stderr[-2000:])
                decisions = read_statistics(Path(directory))[0].decisions
            found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
            spent: dict[int, float] = {}  # by length, of the first trials: microseconds
            for one in decisions:
                if one.operation == op and one.ranks == p:
                    spent.setdefault(one.bytes, one.seconds_beyond_best * 1e6)
            for size in sizes:
                times = {r["algorithm"]: r for r in found if r["bytes"] == size and "median" in r}
                auto = times.pop("auto")
                best = min(times.values(), key=lambda r: r["median"])
                chosen = times.get(
                    auto["ran"], auto
                )  # forced: the same algorithm twice differs by noise alone
                ratio = chosen["median"] / best["median"]
                cost = spent.get(size, 0) / (auto["median"] * 10000)
                rows.append(
                    {"op": op, "ranks": p, "bytes": size, "chosen": auto["ran"], "us": auto["median"]}
                )
                rows[-1] |= {
                    "chosen_forced_us": chosen["median"],
                    "best": best["algorithm"],
                    "best_us": best["median"],
                    "trials": cost,
                }
                ratios.append(ratio)
                costs.append(cost)
                print(
                    f"{op:21} {p:3} {size:8}  {auto['ran']:15} {auto['median']:10.3f}  {best['algorithm']:15}"
                    f" {best['median']:10.3f}  {ratio:.2f}  trials {cost:.2%}",
                    flush=True,
                )
    print(
        f"{sum(r <= 1.05 for r in ratios)} of {len(rows)} cells within 5 % of the best,"
        f" {sum(r <= 1.1 for r in ratios)} within 10 %; trials at most {max(costs):.2%} of 10,000 calls"
    )
    if "--json" in sys.argv:
        Path(sys.argv[sys.argv.index("--json") + 1]).write_text(json.dumps(rows, indent=1) + "\n")


main()
