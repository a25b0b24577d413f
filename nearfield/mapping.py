"""Chooses a CPU for each rank, so that ranks which exchange many data are near each other.

First the ranks are bisected recursively along the tree of the hardware (F. Pellegrini, "Static mapping by dual recursive bipartitioning of
process and architecture graphs", SHPCC 1994); exchanges improve each cut (B. W. Kernighan and S. Lin, "An efficient heuristic procedure for
partitioning graphs", Bell System Technical Journal 49, 1970). Then two ranks are exchanged, or a rank moves to a free CPU, as long as the
total cost falls. This starts from the bisection and from the given order, and again after random exchanges with a fixed seed. The result
never costs more than the given order, but may not be the best; tests compare it with all orders of small jobs.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from nearfield.places import RELATIONS, Place, relation

# The cost of two ranks' traffic, for each thing that their CPUs may have in common: an entry for each of RELATIONS.
Costs = tuple[float, ...]
Traffic = list[dict[int, Costs]]  # of each rank by the other one; symmetric
SECONDS = 5.0  # that searching may take, about
ROUNDS = 50  # of random exchanges, at most
SEEDS = 6  # from which halves are grown


class Problem:
    """Ranks with their traffic, and CPUs; there are at least as many CPUs as ranks."""

    def __init__(self, traffic: Traffic, places: Sequence[Place]) -> None:
        self.traffic, self.places = traffic, list(places)
        self.ranks = len(traffic)
        self.near = [
            [RELATIONS.index(relation(one, other)) if one != other else 0 for other in places]
            for one in places
        ]

    def cost(self, at: Sequence[int]) -> float:
        """The total cost if rank r is on CPU number at[r] of `places`."""
        return sum(
            costs[self.near[at[rank]][at[other]]]
            for rank, of in enumerate(self.traffic)
            for other, costs in of.items()
            if other > rank
        )

    def of_rank(self, rank: int, slot: int, at: Sequence[int], without: int = -1) -> float:
        """The cost of a rank at CPU number `slot`, without its traffic with the rank `without`."""
        near = self.near[slot]
        return sum(costs[near[at[other]]] for other, costs in self.traffic[rank].items() if other != without)


def best_mapping(problem: Problem, seconds: float = SECONDS, rounds: int = ROUNDS) -> list[int]:
    """Returns for each rank the number of its CPU in `problem.places`. All calls return the same, unless time runs out."""
    until = time.monotonic() + seconds
    given = list(range(problem.ranks))
    found = min((improved(problem, start, until) for start in (given, bisected(problem))), key=problem.cost)
    least, chance = problem.cost(found), random.Random(problem.ranks)
    for _ in range(rounds):
        if time.monotonic() > until or problem.ranks < 3:
            break
        tried = improved(problem, _shuffled(found, len(problem.places), chance), until)
        if (cost := problem.cost(tried)) < least:
            found, least = tried, cost
    return found if least < problem.cost(given) * (1 - 1e-9) else given


def _shuffled(at: Sequence[int], slots: int, chance: random.Random) -> list[int]:
    """A copy of the mapping `at` after some random exchanges."""
    order = [*at, *(slot for slot in range(slots) if slot not in set(at))]
    for _ in range(max(2, len(at) // 8)):
        one, other = chance.randrange(len(at)), chance.randrange(slots)
        order[one], order[other] = order[other], order[one]
    return order[: len(at)]


def improved(problem: Problem, at: Sequence[int], until: float) -> list[int]:
    """Exchanges two ranks, or moves one to a free CPU, as long as that helps."""
    order = [*at, *(slot for slot in range(len(problem.places)) if slot not in set(at))]
    ranks, helped = problem.ranks, True
    while helped and time.monotonic() < until:
        helped = False
        for one in range(ranks):
            if not problem.traffic[one]:
                continue
            own = problem.of_rank(one, order[one], order)
            for other in range(len(order)):
                if other == one or (other < one and other < ranks and problem.traffic[other]):
                    continue  # has been tried from the other side
                gain = _gain(problem, order, one, other, own)
                if gain > 1e-9 * own:
                    order[one], order[other] = order[other], order[one]
                    own = problem.of_rank(one, order[one], order)
                    helped = True
    return order[:ranks]


def _gain(problem: Problem, order: list[int], one: int, other: int, own: float) -> float:
    """What it saves to exchange the CPUs of `one` and `other`, which is a free CPU if it is no rank. `own`: the cost of `one` now."""
    if other >= problem.ranks:
        return own - problem.of_rank(one, order[other], order)
    between = problem.traffic[one].get(other)
    now = own + problem.of_rank(other, order[other], order, one)
    then = problem.of_rank(one, order[other], order, other) + problem.of_rank(other, order[one], order, one)
    if between:  # as near as before
        then += between[problem.near[order[one]][order[other]]]
    return now - then


# ---- recursive bisection
def bisected(problem: Problem) -> list[int]:
    """Maps the ranks by recursive bisection along packages, caches and cores, in the order of these."""
    at = [0] * problem.ranks
    numbers = list(range(len(problem.places)))
    levels: list[Callable[[int], int]] = [
        lambda slot: problem.places[slot].package,
        lambda slot: problem.places[slot].cache,
        lambda slot: problem.places[slot].core,
        lambda slot: slot,
    ]
    _divide(problem, list(range(problem.ranks)), numbers, levels, at)
    return at


def _divide(problem: Problem, ranks: list[int], slots: list[int], levels: list, at: list[int]) -> None:
    """Places the ranks on these CPUs, in halves at the first of the levels at which they differ."""
    if not ranks:
        return
    if len(slots) == 1:
        at[ranks[0]] = slots[0]
        return
    level = next(number for number, of in enumerate(levels) if len({of(slot) for slot in slots}) > 1)
    parts: dict[int, list[int]] = {}
    for slot in slots:
        parts.setdefault(levels[level](slot), []).append(slot)
    groups = sorted(parts.values(), key=lambda part: part[0])
    half = (len(groups) + 1) // 2
    first, second = ([slot for part in side for slot in part] for side in (groups[:half], groups[half:]))
    own = min(len(ranks), len(first))
    # What a pair loses that is cut here.
    far = len(RELATIONS) - 1 - level
    weights = {
        rank: {
            other: costs[far] - costs[0] for other, costs in problem.traffic[rank].items() if other in members
        }
        for members in [set(ranks)]
        for rank in ranks
    }
    seeds = ranks[:: max(1, len(ranks) // SEEDS)][:SEEDS]
    tried = (
        [_exchanged(weights, _grown(weights, ranks, own, seed), ranks) for seed in seeds] if own else [set()]
    )
    one = min(
        tried, key=lambda part: sum(w for rank in part for to, w in weights[rank].items() if to not in part)
    )
    other = [rank for rank in ranks if rank not in one]
    _divide(problem, sorted(one), first, levels, at)
    _divide(problem, other, second, levels, at)


def _grown(weights: dict[int, dict[int, float]], ranks: list[int], count: int, seed: int) -> set[int]:
    """Returns `count` ranks: the given one, and each time the rank with the most traffic to those chosen so far."""
    part, drawn, nearest = {seed}, dict.fromkeys(ranks, 0.0), seed
    while len(part) < count:
        for other, weight in weights[nearest].items():
            drawn[other] += weight
        nearest = max((rank for rank in ranks if rank not in part), key=drawn.__getitem__)
        part.add(nearest)
    return part


def _exchanged(weights: dict[int, dict[int, float]], part: set[int], ranks: list[int]) -> set[int]:
    """Kernighan and Lin's passes: pairs are exchanged, each rank once, whether that helps or not, and what was best is kept."""
    part = set(part)
    while part and len(part) < len(ranks):
        saves = {
            rank: sum(w if (other in part) != (rank in part) else -w for other, w in weights[rank].items())
            for rank in ranks
        }
        free, pairs, gains = set(ranks), [], [0.0]
        while one_and_other := _best_pair(weights, part, free, saves):
            one, other, gain = one_and_other
            pairs.append((one, other))
            gains.append(gains[-1] + gain)
            free -= {one, other}
            for moved, side in ((one, True), (other, False)):
                for rank, weight in weights[moved].items():
                    saves[rank] += 2 * weight if (rank in part) == side else -2 * weight
        most = max(range(len(gains)), key=gains.__getitem__)
        if gains[most] <= 1e-9 * sum(map(abs, gains)):
            return part
        for one, other in pairs[:most]:
            part ^= {one, other}
    return part


def _best_pair(
    weights: dict[int, dict[int, float]], part: set[int], free: set[int], saves: dict[int, float]
) -> tuple[int, int, float] | None:
    """Returns the two ranks, one of each side and both still free, whose exchange saves most, and what it saves."""
    inside = sorted((rank for rank in free if rank in part), key=lambda rank: (-saves[rank], rank))
    outside = sorted((rank for rank in free if rank not in part), key=lambda rank: (-saves[rank], rank))
    best: tuple[int, int, float] | None = None
    for one in inside:
        for other in outside:
            if best and saves[one] + saves[other] <= best[2]:
                break  # no later one can be better
            gain = saves[one] + saves[other] - 2 * weights[one].get(other, 0.0)
            if not best or gain > best[2]:
                best = (one, other, gain)
    return best
