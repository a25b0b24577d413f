"""`nearfield plan`: what a job needs of a node's memory, where that should lie, and what it is worth by the model.

nearfield-model computes the plan by the engine's own code (tools/plan.cpp); this module starts it and shows the plan. Keys of a plan:
ranks, partners (number of ranks that each rank sends to), oversubscribed, pieces, components (bytes of a rank, of the first rank, of the
node), segment, nodes, home and fast (the NUMA node beside a rank, and its fastest), advice (for NEARFIELD_MEMORY), advised, worth.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
from typing import Any

from nearfield.libraries import program
from nearfield.model import machine_file
from nearfield.statistics import Statistics
from nearfield.tables import print_columns

Plan = dict[str, Any]
CALLS = ("alltoall:65536", "alltoall:1048576", "allreduce:1048576", "bcast:1048576")
COMPUTED = ("fastboxes", "copy-buffers", "control")
OF_PROGRAM = ("heap", "windows", "alloc-mem")


def partners_of(pairs: str, ranks: int) -> int:
    """Reads `all`, `none` or `neighbours:N`: the number of ranks that each rank sends to. Raises ValueError."""
    words = {"all": ranks - 1, "none": 0}
    if pairs in words:
        return words[pairs]
    if found := re.fullmatch(r"neighbours:(\d+)", pairs):
        return min(int(found[1]), ranks - 1)
    raise ValueError(f"--pairs takes all, none or neighbours:N, not {pairs}")


def make_plan(ranks: int, partners: int, machine: str = "here", calls=CALLS, **values: int) -> Plan:
    """The plan for a node. `values`: communicators, collectives, long, and bytes of components of a rank (heap, windows, alloc_mem;
    fastboxes, copy_buffers, control: as measured). Raises ValueError."""
    words = {"ranks": ranks, "partners": partners, "calls": ",".join(calls)}
    words |= {name.replace("_", "-"): value for name, value in values.items()}
    if described := machine_file(machine):
        words["machine"] = described[0]
    command = [str(program("nearfield-model")), "plan", *(f"{name}={value}" for name, value in words.items())]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(done.stderr.strip())
    return json.loads(done.stdout)


def held(rank: Statistics, component: str) -> int:
    """The most bytes of a component that a rank held at one time; for "segment", the bytes of its pages at the end."""
    if component == "segment":
        return int(rank.counts["memory_pages"])
    return rank.memory[component].in_use_at_most if component in rank.memory else 0


def plan_job(ranks: list[Statistics], machine: str = "here") -> Plan:
    """The plan for a program that has run: its statistics tell the most that a rank held of each component. Adds "measured" (bytes of
    a rank, by component and of the segment) and "calls" (of the first rank that Nearfield served). Raises ValueError."""
    told = [rank for rank in ranks if rank.counts["ranks_of_the_node"]]
    if not told:
        raise ValueError("Nearfield served no rank")
    first = told[0]
    most = {name: max(held(rank, name) for rank in told) for name in (*COMPUTED, *OF_PROGRAM)}
    calls = {name: (op.calls, op.bytes // op.calls) for name, op in first.operations.items() if op.bytes}
    plan = make_plan(
        int(first.counts["ranks_of_the_node"]),
        max(int(rank.counts["messages_fastboxes"]) for rank in told),
        machine,
        [f"{op}:{each}" for op, (_, each) in calls.items()],
        **{name.replace("-", "_"): count for name, count in most.items() if count},
    )
    plan["measured"] = most | {"segment": max(held(rank, "segment") for rank in told)}
    for cell in plan["worth"]:
        cell["calls"] = calls[cell["op"]][0]
    return plan


def show(plan: Plan) -> None:
    """Prints the plan for people."""
    measured = plan.get("measured", {})
    oversubscribed = ", more than there are CPUs" if plan["oversubscribed"] else ""
    print(f"{plan['ranks']} ranks on the node{oversubscribed}, each sends to {plan['partners']}\n")
    titles = ["memory", "component", "bytes each", "one for each", "number per rank"]
    rows = [
        [piece["name"], piece["component"], str(piece["each"]), piece["per"], f"x {piece['of_a_rank']}"]
        for piece in plan["pieces"]
    ]
    print_columns(titles, rows, [None] * len(rows))
    print()
    titles = ["component", "in a rank", "in rank 0", "on the node"] + ["measured"] * bool(measured)
    rows = []
    for row in [*plan["components"], {"name": "segment", **plan["segment"]}]:
        if row["node"] or measured.get(row["name"]):
            sizes = [size(row[key]) for key in ("rank", "leader", "node")]
            rows.append([row["name"], *sizes] + [size(measured.get(row["name"], 0))] * bool(measured))
    print_columns(titles, rows, [None] * len(rows))
    print()
    for node in plan["nodes"]:
        figures = f", {node['bandwidth']} MB/s" if node["bandwidth"] else ""
        figures += f", {node['latency']} ns" if node["latency"] else ""
        print(
            f"NUMA node {node['node']}: {size(node['bytes'])}, nearest CPUs {node['cpus'] or 'none'}{figures}"
        )
    if not plan["nodes"]:
        print(f"the place of the memory is not known: {plan['trouble']}")
    elif not plan["advice"]:
        print("The memory near each rank is as fast as any other, so there is nothing to place.")
    else:
        _show_advice(plan)


def _show_advice(plan: Plan) -> None:
    home, fast = plan["home"], plan["fast"]
    print(
        "\nThe suggested placement, and the time that each KiB through it takes a rank, as the cost model estimates (not measured):\n"
    )
    titles = [
        "component",
        "where",
        "a rank's memory",
        "not in caches",
        f"ns in node {home}",
        f"ns in node {fast}",
    ]
    rows = []
    for name, row in plan["advised"].items():
        estimate = ["-"] * 3
        if "slow_ns" in row:
            beyond = f"{row['beyond_caches']:.0%}"
            estimate = [beyond, f"{row['slow_ns']:.4g}", f"{row['fast_ns']:.4g}"]
        rows.append([name, row["words"], size(row["fits"]), *estimate])
    print_columns(titles, rows, [None] * len(rows))
    print(f'\nNEARFIELD_MEMORY="{plan["advice"]}"')
    if not plan["worth"]:
        return
    print("\nCollectives with all memory in one node or the other, as the cost model estimates:\n")
    titles = ["operation", "bytes", f"us in node {home}", f"us in node {fast}", "ratio"]
    of_job = any("calls" in cell for cell in plan["worth"])
    rows = []
    for cell in plan["worth"]:
        slow, quick = cell["slow_ns"] / 1000, cell["fast_ns"] / 1000
        rows.append([cell["op"], str(cell["bytes"]), f"{slow:.4g}", f"{quick:.4g}", f"{quick / slow:.2f}"])
        if of_job:
            rows[-1] += [str(cell["calls"]), f"{cell['calls'] * (slow - quick) / 1e6:.3g}"]
    print_columns(titles + ["calls", "seconds saved"] * of_job, rows, [None] * len(rows))


def size(count: int) -> str:
    """Bytes with three digits and a unit."""
    unit = min(int(math.log2(count) // 10), 4) if count else 0
    return f"{count / (1 << 10 * unit):.4g} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[unit]}"
