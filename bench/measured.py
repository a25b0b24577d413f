"""Results of bench/results as ratios of Nearfield's time to that of the quickest plain host, and where they come from."""

from __future__ import annotations

import json
import statistics
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
nearfields_command = ""  # nothing has to be built

from nearfield.verdict import word  # noqa: E402

Row = dict[str, Any]
RESULTS = ROOT / "bench/results"
SOURCES = tomllib.loads((RESULTS / "sources.toml").read_text())
WORSE = 1.05  # ratios above are bold
ENOUGH = 3  # hosts, or all of fewer, that a complete cell has
POINT_TO_POINT = (
    "latency",
    "sendrecv",
    "exchange",
    "waitall",
    "waits",
    "anysource",
    "testloop",
    "halo",
    "waitany",
    "probe",
)
NEAR, FAR, CORE, NONE = "near", "far", "one core", ""


def load(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text())


def machine_of(name: str) -> str:
    return SOURCES["machines"][SOURCES["files"][name]["machine"]]


def source(names: Iterable[str]) -> list[str]:
    """Lines that say where figures come from."""
    lines = []
    for name in names:
        of = SOURCES["files"][name]
        lines += [
            f"{machine_of(name)}; recorded in commit {of['commit']}; bench/results/{name}.json:",
            "",
            f"    {of['command']}",
            "",
        ]
    return lines


def state_of(row: Row) -> str:
    """The state's word: CORE if a cache line takes less than 30 ns from core to core, NEAR below 100, FAR above 150, otherwise NONE."""
    state = row.get("state", "any")
    if state in (NEAR, FAR):
        return state
    if not state.endswith(" ns"):
        return NONE
    lines = [
        float(word) for word in state.removesuffix(" ns").split("-")
    ]  # one, or the shortest and the longest
    if lines[-1] < 30:
        return CORE
    return NEAR if lines[-1] < 100 else FAR if lines[0] > 150 else NONE


def label_of(row: Row) -> str:
    """The operation with what else it was measured with."""
    window = f" ({row['window']}, {row['target']})" if row.get("window") else ""
    return row["op"] + window + (", IMB's loop" if row.get("loop") == "imb" else "")


class Cells:
    """Ratios by (ranks, state, label, bytes) of a file of `nearfield bench`; a cell of fewer hosts than ENOUGH is incomplete."""

    def __init__(self, name: str) -> None:
        self.name = name
        plain: dict[tuple, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        ours: dict[tuple, list[float]] = defaultdict(list)
        hosts: dict[int, set[str]] = defaultdict(set)
        for row in load(name):
            if "state" not in row:
                continue
            key = (row["ranks"], state_of(row), label_of(row), row["bytes"])
            if row["mode"] == "plain":
                plain[key][row["host"]].append(row["median"])
                hosts[row["ranks"]].add(row["host"])
            elif row["mode"] == "nearfield":
                ours[key].append(row["median"])
        self.ratios: dict[tuple, float] = {}
        self.complete: set[tuple] = set()
        for key, times in ours.items():
            if best := [statistics.median(of_host) for of_host in plain.get(key, {}).values()]:
                self.ratios[key] = statistics.median(times) / min(best)
                if len(plain[key]) >= min(ENOUGH, len(hosts[key[0]])):
                    self.complete.add(key)

    def groups(self) -> list[tuple[int, str]]:
        """Ranks and states."""
        return sorted(
            {key[:2] for key in self.ratios},
            key=lambda each: (each[0], (NEAR, FAR, CORE, NONE).index(each[1])),
        )

    def of(self, ranks: int, state: str) -> dict[tuple[str, int], float]:
        return {key[2:]: ratio for key, ratio in self.ratios.items() if key[:2] == (ranks, state)}

    def is_complete(self, ranks: int, state: str, cell: tuple[str, int]) -> bool:
        return (ranks, state, *cell) in self.complete


# ---------------------------------------------------------------- programs
def host_name(host: str) -> str:
    return {
        "mpich": "MPICH",
        "openmpi": "Open MPI",
        "impi": "Intel MPI",
        "debian-openmpi": "Open MPI 4.1.4",
        "debian-mpich": "MPICH 4.0.2",
    }.get(host, host)


PROGRAMS = {
    "fft": "3-D FFT (Python)",
    "matmul": "product of matrices (Python)",
    "stencil": "2-D stencil (C)",
    "mesh": "adaptive mesh (C)",
    "training": "training a network (Python)",
}
APPLICATIONS = {
    "lammps": "LAMMPS",
    "gromacs": "GROMACS",
    "hpcc": "HPCC",
    "espresso": "Quantum ESPRESSO",
    "nwchem": "NWChem",
    "h5py": "h5py, by elements",
}
OF_PROGRAMS = [f"apps-zen4-{app}" for app in PROGRAMS]
OF_APPLICATIONS = [
    "applications-zen4-2-ranks",
    "applications-zen4-2-ranks-again",
    "applications-zen4-8-ranks",
    "applications-xeon-2-ranks",
    "applications-zen3-2-ranks",
    "applications-zen3-gromacs",
]


def pairs() -> dict[tuple[str, int, str], tuple[Row, Row]]:
    """Rows plain and with Nearfield of the programs, by program, ranks and host."""
    rows: dict[tuple, Row] = {}
    for name in OF_PROGRAMS:
        rows |= {(row["app"], row["ranks"], row["host"], row["mode"]): row for row in load(name)}
    return {key[:3]: (row, rows[*key[:3], "nearfield"]) for key, row in rows.items() if key[3] == "plain"}


def word_of(plain: Row, ours: Row) -> str:
    """The verdict on a program by its quartiles: faster or slower if they do not overlap, else undecided."""
    if ours["seconds_upper"] < plain["seconds_lower"]:
        return "faster"
    return "slower" if ours["seconds_lower"] > plain["seconds_upper"] else "undecided"


def application_word(found: Row) -> str:
    return word(found["modes"]["both"]["ratio"]["all"], found["modes"]["plain"]["wall"]["median"])


# ---------------------------------------------------------------- words
def size(count: int) -> str:
    """4K, 1M."""
    for unit, shift in (("M", 20), ("K", 10)):
        if count >= 1 << shift:
            return f"{count >> shift}{unit}"
    return str(count)


def number(ratio: float) -> str:
    text = f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"
    return f"**{text}**" if ratio > WORSE else text


def three(value: float) -> str:
    """A number with three significant digits, or without decimals from 100 on."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def table(titles: list[str], rows: list[list[str]]) -> list[str]:
    return [
        f"| {' | '.join(row)} |".replace("|  |", "| |").replace("|  |", "| |")
        for row in (titles, ["---"] * len(titles), *rows)
    ]


def heading(ranks: int, state: str) -> str:
    return f"{ranks} ranks" + f", {state}" * bool(state)
