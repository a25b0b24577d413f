"""Measures how much more memory a rank takes with Nearfield than with the plain host. Prints a table in KiB.

Arguments: hosts, numbers of ranks, and the number of starts, whose median counts. With `talk` it also measures after every rank
has exchanged 20 messages of 8 bytes and one of 16 KiB with every other. Example: mpich,impi 2,4,8 5 talk.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean, median

from nearfield.hosts import Host, find_hosts, launch_command, launcher_environment, parse_hosts
from nearfield.libraries import program
from nearfield.values import parse_ranks

LINE = re.compile(r"(\w+) rank \d+ pss (\d+) own (\d+) heap (\d+) tables (\d+)")
PARTS = ("pss", "own", "heap", "tables")
Bytes = dict[str, dict[str, float]]  # phase, part: KiB per rank


def measure(host: Host, ranks: int, nearfield: bool, talk: tuple[str, ...] = ()) -> Bytes:
    """Runs one job. Returns the bytes of a rank, the mean over ranks, for each phase. Raises RuntimeError if the job fails."""
    with tempfile.TemporaryDirectory() as scratch:
        words = [str(program(f"nearfield-memory-{host.abi}")), str(Path(scratch) / "met"), *talk]
        done = subprocess.run(
            launch_command(host, ranks, words),
            env=launcher_environment(host, nearfield),
            capture_output=True,
            text=True,
            timeout=300,
        )
    phases: dict[str, list[tuple[int, ...]]] = {}
    for phase, *numbers in LINE.findall(done.stdout):
        phases.setdefault(phase, []).append(tuple(map(int, numbers)))
    if done.returncode or not phases or any(len(rows) != ranks for rows in phases.values()):
        raise RuntimeError(f"{host.name}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    return {
        phase: dict(zip(PARTS, map(mean, zip(*rows, strict=True)), strict=True))
        for phase, rows in phases.items()
    }


def middle(starts: list[Bytes]) -> Bytes:
    """The medians of several starts."""
    return {
        phase: {part: median(start[phase][part] for start in starts) for part in parts}
        for phase, parts in starts[0].items()
    }


def main() -> None:
    """Prints a line for each host, number of ranks and phase."""
    names, ranks, starts = parse_hosts(sys.argv[1]), parse_ranks(sys.argv[2]), int(sys.argv[3])
    talk = ("16384", "20") if "talk" in sys.argv else ()
    print("host       ranks phase     above   private  segment     heap   tables     host alone")
    for name in names:
        host = find_hosts()[name]
        for p in ranks:
            both = {True: [], False: []}
            for _ in range(starts):
                for with_us, found in both.items():
                    found.append(measure(host, p, with_us, talk))
            plain, ours = middle(both[False]), middle(both[True])
            for phase, parts in ours.items():
                more = {part: parts[part] - plain[phase][part] for part in PARTS}
                above = more["pss"] + more["own"] + more["heap"]
                print(
                    f"{name:10} {p:5} {phase:8} {above:7.0f}  {more['pss']:8.0f} {more['own']:8.0f} {more['heap']:8.0f}"
                    f" {more['tables']:8.0f}  {plain[phase]['pss']:13.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
