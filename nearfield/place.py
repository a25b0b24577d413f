"""`nearfield place`: suggests a CPU for each rank of a program, by the messages of an earlier run (nearfield/mapping.py searches).

The time of a message is the cost model's: a cache line from CPU to CPU and the copy of its bytes. A collective counts as messages to all
other members of its communicator, each with an equal part of what the rank gives; in the operations of ALL_BLOCKS each with a block.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nearfield.info import probe
from nearfield.mapping import Problem, Traffic, best_mapping
from nearfield.model import figures_of, lines_between
from nearfield.places import RELATIONS, Place, pairs_of, places_here, relation
from nearfield.recording import load, total

Record = dict[str, Any]
ALL_BLOCKS = ("MPI_Alltoall", "MPI_Ialltoall", "MPI_Alltoall_init")
PAIRS = 24  # of CPUs whose lines are measured
DEFAULT_LINE, DEFAULT_COPY = 100.0, 0.018  # those of engine/machine/machine.hpp


@dataclass(frozen=True)
class Figures:
    """Nanoseconds of a cache line and of a byte from CPU to CPU: an entry for each of RELATIONS, what the two CPUs have in common."""

    line: tuple[float, ...]
    byte: tuple[float, ...]


@dataclass(frozen=True)
class Suggestion:
    """The CPU of each rank; the time of all data transfers there and with ranks in the order of CPUs, in seconds, summed over ranks."""

    cpus: list[int]
    cores: list[int]  # the cores, numbered as Open MPI's launcher does: in the order of packages and caches
    seconds: float
    seconds_in_order: float
    in_mpi: float
    program: str


# ---- the machine
def machine_of(name: str) -> tuple[list[Place], Figures]:
    """The CPUs, a thread of each core first, and figures: of this machine, measured in a second, or of a described one."""
    if name == "here":
        places = places_here()
        return places, _figures(_figures_here(), _lines_here(places))
    told = figures_of(name)
    cpus, sockets = int(told.get("cpus") or len(os.sched_getaffinity(0))), int(told.get("sockets", 1))
    each, of_cache = max(1, cpus // max(1, sockets)), int(told.get("cores") or cpus)
    places = [Place(cpu, cpu, cpu // of_cache * of_cache, cpu // each * each) for cpu in range(cpus)]
    return places, _figures(told, {})


def _figures(told: dict[str, Any], lines: dict[str, float]) -> Figures:
    """Makes figures. If the time of copies between far CPUs is not known, it grows with distance as the time of a line does."""
    line = float(told.get("line", 0)) or DEFAULT_LINE
    near = float(told.get("near", 0)) or line
    of = {"core": near, "cache": near, "package": line, "machine": line} | lines
    for before, name in zip(RELATIONS, RELATIONS[1:]):
        of[name] = max(of[name], of[before])
    copy = float(told.get("pair_copy", 0)) if told.get("pair_line") else float(told.get("copy", 0))
    copies = {name: (copy or DEFAULT_COPY) * of[name] / of["cache"] for name in RELATIONS}
    if told.get("far_line") and told.get("far_copy"):
        copies |= {name: max(float(told["far_copy"]), copies["cache"]) for name in ("package", "machine")}
    return Figures(tuple(of[name] for name in RELATIONS), tuple(copies[name] for name in RELATIONS))


def _figures_here() -> dict[str, float]:
    return {row["name"]: row["value"] for row in probe()["machine"]["figures"]}


def _lines_here(places: Sequence[Place]) -> dict[str, float]:
    """Measures the time of a line: the median over some pairs of CPUs, for each relation that pairs here have."""
    by_cpu = {place.cpu: place for place in places}
    pairs = pairs_of(places, PAIRS)
    if not pairs:
        return {}
    found: dict[str, list[float]] = {}
    for row in lines_between(pairs):
        if row["ns"] > 0:
            found.setdefault(relation(by_cpu[row["first"]], by_cpu[row["second"]]), []).append(row["ns"])
    return {name: statistics.median(lines) for name, lines in found.items()}


def slots_of(places: Sequence[Place], ranks: int) -> list[Place]:
    """The CPUs for the ranks, in the order of packages and caches: one hardware thread of each core if that suffices. Raises ValueError."""
    ordered = sorted(places, key=lambda place: (place.package, place.cache, place.core, place.cpu))
    cores = list({place.core: place for place in reversed(ordered)}.values())[::-1]
    slots = cores if ranks <= len(cores) else ordered
    if ranks > len(slots):
        raise ValueError(f"there are {ranks} ranks and only {len(slots)} CPUs")
    return slots


# ---- traffic
def traffic_of(world: Record, figures: Figures) -> Traffic:
    """The nanoseconds of each pair's traffic, for each relation that their CPUs may have. Raises ValueError."""
    if "sent" not in world:
        raise ValueError("the report does not say which ranks send to which: an earlier version wrote it")
    size = world["size"]
    sums: dict[tuple[int, int], list[float]] = {}

    def add(rank: int, other: int, messages: float, number: float) -> None:
        if rank != other:
            one = sums.setdefault((min(rank, other), max(rank, other)), [0.0, 0.0])
            one[0] += messages
            one[1] += number

    for one in world["sent"]:
        add(one["rank"], one["to"], one["messages"], one["bytes"])
    members = {one["id"]: one["members"] for one in world["communicators"] if not one["inter"]}
    for row in world["rows"]:
        group = members.get(row["communicator"], []) if row["kind"] == "collective" else []
        for rank, of in row["ranks"].items() if len(group) > 1 else ():
            each = (
                of["bytes"]
                if row["function"].removesuffix("_c") in ALL_BLOCKS
                else of["bytes"] / (len(group) - 1)
            )
            for other in group:
                add(int(rank), other, of["calls"] / (len(group) - 1), each)
    traffic: Traffic = [{} for _ in range(size)]
    for (rank, other), (messages, number) in sums.items():
        if max(rank, other) < size:
            costs = tuple(messages * line + number * byte for line, byte in zip(figures.line, figures.byte))
            traffic[rank][other] = traffic[other][rank] = costs
    return traffic


def suggest(run: Path, machine: str = "here", world: int = 1) -> Suggestion:
    """The CPUs for a run that `nearfield run --report` has stored; `world`: which of its programs, from 1 on. Raises ValueError."""
    worlds = load(run)["worlds"]
    if not 1 <= world <= len(worlds):
        raise ValueError(f"{run} has {len(worlds)} programs; there is no number {world}")
    found = worlds[world - 1]
    hosts = {rank["host"] for rank in found["ranks"]}
    if len(hosts) > 1:
        raise ValueError(f"the ranks ran on {len(hosts)} nodes; `nearfield place` handles one node only")
    places, figures = machine_of(machine)
    slots = slots_of(places, found["size"])
    problem = Problem(traffic_of(found, figures), slots)
    if not any(problem.traffic):
        raise ValueError("no rank has sent anything to another rank, so every order is equally good")
    at = best_mapping(problem)
    cores = {core: number for number, core in enumerate(dict.fromkeys(slot.core for slot in slots))}
    return Suggestion(
        [slots[slot].cpu for slot in at],
        [cores[slots[slot].core] for slot in at],
        problem.cost(at) / 1e9,
        problem.cost(range(found["size"])) / 1e9,
        total(found["rows"], "seconds"),
        found["program"],
    )


# ---- what launchers take
def words_for(found: Suggestion, file: Path | None = None) -> dict[str, str]:
    """The options of mpiexec for the suggestion, by launcher. `file`: the rankfile, if one is written.

    Open MPI 4 takes a list of CPUs as well, but binds ranks in the order of the CPUs whatever the list's order is.
    """
    cpus, cores = (",".join(map(str, numbers)) for numbers in (found.cpus, found.cores))
    return {
        "mpich": f"-bind-to user:{cpus}",
        "openmpi": f"--map-by pe-list={cores}:ordered",
        "openmpi 4": f"--rankfile {file or 'FILE'}" + ("" if file else ", which --rankfile FILE writes here"),
        "impi": f"-genv I_MPI_PIN 1 -genv I_MPI_PIN_PROCESSOR_LIST {cpus}",
    }


def rankfile(found: Suggestion, node: str = "localhost") -> str:
    """The text of a rankfile for Open MPI: a line for each rank, with the logical number of its core."""
    return "".join(f"rank {rank}={node} slot={core}\n" for rank, core in enumerate(found.cores))


def show(found: Suggestion, file: Path | None) -> None:
    """Prints what the suggestion gains by the model, and the launchers' options for it."""
    before, after = found.seconds_in_order, found.seconds
    print(f"{found.program}: {len(found.cpus)} ranks, which together spent {found.in_mpi:.3g} s in MPI")
    print(
        f"data transfer takes {before:.3g} s with ranks in the order of the CPUs and {after:.3g} s in the suggested order, {after / before:.2f}"
        " of it, as the cost model estimates; this was not measured"
    )
    if after >= before:
        print("no order was found that is better than the order of the CPUs")
    for launcher, words in words_for(found, file).items():
        print(f"{launcher}: {words}")
