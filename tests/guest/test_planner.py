"""What the planner advises in a guest is what its ranks get there: every page of it, and as many bytes as predicted."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from nearfield.plan import COMPUTED, held
from tests.guest import placed
from tests.guest.guest import Guest
from tests.guest.placed import MIB, RANKS, pages
from tests.mpi.jobs import BUILD, ROOT

HEAP = 32 * MIB


def plan_in(guest: Guest, **values: int) -> dict:
    """The plan for jobs of this folder's programs in the guest."""
    words = [f"{name}={value}" for name, value in ({"ranks": RANKS} | values).items()]
    ended = guest.run([str(ROOT / "build" / BUILD / "bin/nearfield-model"), "plan", *words])
    assert ended.returncode == 0, ended.text
    return json.loads(ended.stdout)


@pytest.mark.parametrize("name", ["flat", "per-socket", "tiers"])
@pytest.mark.parametrize("host", ["mpich", "openmpi"])
def test_advice_places_every_page(booted: Callable[[str], Guest], name: str, host: str) -> None:
    guest = booted(name)
    plan = plan_in(guest, heap=HEAP)
    assert plan["fast"] != plan["home"] and "bandwidth" in plan["advice"], plan
    job = placed.run(guest, "traffic", "heap", HEAP // 2, memory=plan["advice"], host=host)
    for component, row in plan["advised"].items():
        counts = job.counts.get(component)
        if not row["words"]:
            assert counts is None
        elif row["fits"] and "max=" not in row["words"]:
            assert counts.asked > 0 and counts.placed == counts.asked, (component, plan["advice"], counts)
    # Those of one NUMA node in each rank, the rank's own fast one where it has any.
    for rank, lying in job.of("heap").items():
        assert sum(lying.values()) == pages(HEAP // 2)
        if name != "tiers":
            fast = [node for node in lying if node == "absent" or not guest.machine.nodes[node].cpus]
            assert list(lying) == fast, (rank, lying)
    (told,) = job.completed.statistics
    predicted = {row["name"]: row["leader"] for row in plan["components"]}
    for component in COMPUTED:
        assert held(told, component) == pytest.approx(predicted[component], rel=0.05), component
