"""Random collectives that move data across intercommunicators, those that do not block outstanding together.

    worker_across.py FIRST SEED CASES    FIRST ranks in the first group

What a call must bring follows from the standard: all data is a function of who sends what to whom.
"""

from __future__ import annotations

import os
import random
import sys
from dataclasses import dataclass

import numpy as np
from intercommunicators import WORLD, free, halves, intercommunicators  # ranks run this file as a script
from mpi4py import MPI

ROOM = 3  # ints before and behind what a call writes


@dataclass
class Buffer:
    """Blocks of ints, with gaps, in an array that is otherwise not touched."""

    counts: list[int]
    displacements: list[int]  # in elements of `type`
    type: MPI.Datatype
    step: int  # ints per element, of which the first is data

    def array(self, fill: int) -> np.ndarray:
        ends = [(d + c) * self.step for d, c in zip(self.displacements, self.counts, strict=True)]
        return np.full(2 * ROOM + max([0, *ends]), fill, dtype="i")

    def where(self, block: int) -> np.ndarray:
        return ROOM + (self.displacements[block] + np.arange(self.counts[block])) * self.step

    def address(self, array: np.ndarray) -> object:
        return MPI.memory.frombuffer(array)[ROOM * 4 :]


SPACED = MPI.INT.Create_resized(0, 8).Commit()


def buffer(draw: random.Random, counts: list[int], gaps: bool) -> Buffer:
    spaced = draw.random() < 0.4
    displacements, at = [0] * len(counts), 0
    for i in draw.sample(range(len(counts)), len(counts)) if gaps else range(len(counts)):
        at += draw.randrange(3) if gaps else 0
        displacements[i] = at
        at += counts[i]
    return Buffer(counts, displacements, SPACED if spaced else MPI.INT, 2 if spaced else 1)


def values(case: int, group: int, rank: int, block: int, count: int) -> np.ndarray:
    """What a rank has for another."""
    return (np.arange(count) * 7 + case * 1000003 + group * 10007 + rank * 101 + block * 13).astype("i")


NAMES = [
    "barrier",
    "bcast",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
    "gatherv",
    "scatterv",
    "allgatherv",
]
NAMES += ["alltoallv", "alltoallw"]
OURS_OVERLAP = ["barrier", *NAMES[-5:]]


def may_overlap(name: str) -> bool:
    """Whether the non-blocking form is ours. Plain MPICH 5.0.2 and Intel MPI 2021.19 lose MPI_Ibcast from any root but
    the first."""
    return "LD_PRELOAD" in os.environ and name in OURS_OVERLAP and "BLOCKING_ALONE" not in os.environ


class Case:
    """One collective, drawn alike by all ranks of both groups."""

    def __init__(self, inter: MPI.Intercomm, group: int, seed: int, number: int):
        draw = self.draw = random.Random(seed * 100003 + number)
        self.inter, self.group, self.number = inter, group, number
        self.name = draw.choice(NAMES)
        self.immediate = draw.random() < 0.4
        self.immediate = self.immediate and may_overlap(self.name)
        most = draw.choice([0, 1, 5, 200, 3000, 40000])
        self.sizes = [inter.size, inter.remote_size] if group == 0 else [inter.remote_size, inter.size]
        p, q = self.sizes
        self.root_group = draw.randrange(2)
        self.root = draw.randrange(self.sizes[self.root_group])
        # counts[g][r][k]: what rank r of group g has for rank k of the other.
        even = [draw.randrange(most + 1) for _ in range(2)]
        if self.name.endswith(("v", "w")):
            self.counts = [
                [
                    [
                        draw.randrange(most + 1) if draw.random() < 0.8 else 0
                        for _ in range(q if g == 0 else p)
                    ]
                    for _ in range(n)
                ]
                for g, n in enumerate((p, q))
            ]
            if self.name in ("gatherv", "allgatherv"):  # the same for all
                self.counts = [[[row[0]] * len(row) for row in rows] for rows in self.counts]
        else:
            self.counts = [[[even[g]] * (q if g == 0 else p) for _ in range(n)] for g, n in enumerate((p, q))]
        self.mine = random.Random(seed * 7 + number * 1009 + WORLD.rank)  # layouts are a rank's own

    def root_argument(self) -> int:
        if self.group != self.root_group:
            return self.root
        return MPI.ROOT if self.inter.rank == self.root else MPI.PROC_NULL

    def blocks_out(self) -> list[tuple[int, int]] | None:
        """(partner, length) of what this rank sends, in the order of its blocks; one for all where they are the same."""
        me, g = self.inter.rank, self.group
        rows = self.counts[g][me]
        if self.name in ("alltoall", "alltoallv", "alltoallw", "scatter", "scatterv"):
            return list(enumerate(rows))
        return [(0, rows[0])]

    def blocks_in(self) -> list[tuple[int, int]]:
        me, other = self.inter.rank, self.counts[1 - self.group]
        many = self.name in (
            "alltoall",
            "alltoallv",
            "alltoallw",
            "gather",
            "gatherv",
            "allgather",
            "allgatherv",
        )
        if many:
            return [(r, row[me]) for r, row in enumerate(other)]
        return [(self.root, other[self.root][me])]

    def run(self) -> MPI.Request | None:
        name, g, me = self.name, self.group, self.inter.rank
        rooted = name in ("bcast", "gather", "scatter", "gatherv", "scatterv")
        gathers = name.startswith("gather")
        sends = receives = name != "barrier"
        if rooted:
            argument = self.root_argument()
            at_root, idle = argument == MPI.ROOT, argument == MPI.PROC_NULL
            sends = not idle and (at_root != gathers)
            receives = not idle and (at_root == gathers)
        varying = name.endswith(("v", "w"))
        common = name in ("bcast", "gather", "gatherv", "allgather", "allgatherv")
        out = self.blocks_out() if sends else []
        self.out = buffer(self.mine, [n for _, n in out], varying)
        self.expected_in = self.blocks_in() if receives else []
        self.into = buffer(self.mine, [n for _, n in self.expected_in], varying)
        self.sent, self.got = self.out.array(-1), self.into.array(-2)
        for block, (partner, n) in enumerate(out):
            self.sent[self.out.where(block)] = values(self.number, g, me, 0 if common else partner, n)
        self.expected = self.got.copy()
        for block, (partner, n) in enumerate(self.expected_in):
            self.expected[self.into.where(block)] = values(
                self.number, 1 - g, partner, 0 if common else me, n
            )
        arguments = []
        if name == "bcast":
            side, array = (self.out, self.sent) if sends else (self.into, self.got)
            arguments.append(self.simple(side, array) if sends or receives else [None, 0, MPI.INT])
        elif name != "barrier":
            arguments.append(self.spec(self.out, self.sent, sends, out=True))
            arguments.append(self.spec(self.into, self.got, receives, out=False))
        if rooted:
            arguments.append(argument)
        function = getattr(self.inter, ("I" + name) if self.immediate else name.capitalize())
        return function(*arguments)

    @staticmethod
    def simple(side: Buffer, array: np.ndarray) -> list:
        at = side.displacements[0] * side.step * 4
        return [side.address(array)[at:], side.counts[0], side.type]

    def spec(self, side: Buffer, array: np.ndarray, used: bool, out: bool) -> object:
        if not used:
            return None
        name = self.name
        each = name == "alltoallw"
        many = (
            name.startswith("alltoall")
            or (name == "scatterv" and out)
            or (name in ("gatherv", "allgatherv") and not out)
        )
        if each:
            at = [d * side.step * 4 for d in side.displacements]
            return [side.address(array), side.counts, at, [side.type] * len(at)]
        if many and name.endswith("v"):
            return [side.address(array), side.counts, side.displacements, side.type]
        return self.simple(side, array)

    def check(self) -> None:
        assert (self.got == self.expected).all(), (
            self.name,
            self.immediate,
            self.number,
            self.group,
            self.inter.rank,
            np.flatnonzero(self.got != self.expected)[:5],
        )


def collectives(first: int, seed: int, cases: int) -> None:
    """Random ones on all of them; those that do not block are outstanding together."""
    comms = intercommunicators(first)
    names = sorted(comms)
    _, is_first, _ = halves(first)
    draw = random.Random(seed)
    outstanding: list[tuple[MPI.Request, Case]] = []
    carriers = 0
    for number in range(cases):
        case = Case(comms[draw.choice(names)], int(not is_first), seed, number)
        request = case.run()
        carriers += 1
        if case.immediate:
            outstanding.append((request, case))
        else:
            case.check()
        if draw.random() < 0.3:
            draw.shuffle(outstanding)
            for request, waited in outstanding:
                request.Wait()
                waited.check()
            outstanding.clear()
    for request, waited in outstanding:
        request.Wait()
        waited.check()
    WORLD.Barrier()
    free(comms)
    if WORLD.rank == 0:
        print(f"{carriers} cases on {len(names)} intercommunicators")


if __name__ == "__main__":
    collectives(*map(int, sys.argv[1:]))
