"""`nearfield info`: properties of this machine, which nearfield-probe finds, and what is installed."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from nearfield import __version__
from nearfield.bench import host_version
from nearfield.hosts import find_hosts
from nearfield.libraries import library_directory, program
from nearfield.tables import styled


def probe() -> dict[str, Any]:
    """The findings of nearfield-probe. Raises NotBuilt."""
    return json.loads(
        subprocess.run([str(program("nearfield-probe"))], capture_output=True, text=True).stdout
    )


def gather() -> dict[str, Any]:
    """The probe's findings, with version, libraries and hosts. Raises NotBuilt."""
    libraries = sorted(path.name for path in library_directory().glob("libnearfield*.so"))
    hosts = {name: host_version(host) for name, host in find_hosts().items()}
    return {"version": __version__, "libraries": libraries, "hosts": hosts, **probe()}


def settings_table() -> str:
    """The settings as a table in Markdown."""
    rows = [
        (
            f"`{row['variable']}`",
            f"`{row['default']}`" if row["default"] else "",
            row["decides"],
            row["meaning"],
        )
        for row in gather()["settings"]
    ]
    header = [("variable", "default", "decided by", "meaning"), ("---",) * 4]
    return "\n".join(" | ".join(("", *row, "")).strip().replace("|  |", "| |") for row in header + rows)


def show(as_json: bool, everything: bool) -> None:
    """Prints the findings, as JSON (all of them) or for people: in short, or everything."""
    found = gather()
    if as_json:
        print(json.dumps(found, indent=1))
        return
    sections = [
        ("Machine", machine_lines(found)),
        ("Ways of reaching a peer's memory", reach_lines(found["reach"])),
        ("Hosts", [f"{name:15} {version}" for name, version in found["hosts"].items()]),
        (f"Libraries of Nearfield {found['version']}", [" ".join(found["libraries"])]),
    ]
    if everything:
        sections += [
            ("Memory, and where NEARFIELD_MEMORY places it", placement_lines(found["placement"])),
            ("Settings", setting_lines(found["settings"])),
            figures_section(found["machine"]),
            ("Algorithms", algorithm_lines(found["algorithms"])),
        ]
    else:
        given = [row for row in found["settings"] if row["variable"] in os.environ]
        sections.append(("Settings in the environment", setting_lines(given) or ["none"]))
    for title, lines in sections:
        print(styled(title, "bold"))
        for line in lines:
            print(f"  {line}")
    if not everything:
        print(
            "\n`nearfield info --all` also shows memory, all settings, figures of the machine, and algorithms",
        )


def machine_lines(found: dict[str, Any]) -> list[str]:
    """Caches, CPUs that can be used, huge pages."""
    topology, cpus, pages = found["topology"], found["cpus"], found["pages"]
    if "error" in topology:
        lines = [
            f"caches and packages are not known: {topology['error']} (libhwloc.so.15, Debian's libhwloc15); Linux {found['kernel']}"
        ]
    else:
        sizes = ", ".join(f"{level} {_bytes(topology[level])}" for level in ("l1d", "l2", "l3"))
        lines = [
            f"{topology['packages']} packages, {topology['cores']} cores; {sizes}; Linux {found['kernel']}",
            f"groups that share a last-level cache: {', '.join(topology['l3_groups'])}",
        ]
    quota = "no quota" if cpus["quota"] is None else f"quota of {cpus['quota']} CPUs"
    lines.append(f"CPUs available: {cpus['available']:g} (allowed {cpus['allowed']}, {quota})")
    if found["session_groups"]:
        lines += [
            "scheduling: each session is a scheduling group. If a launcher gives each rank a session, as MPICH's does,",
            "ranks that share CPUs wait longer; `sysctl kernel.sched_autogroup_enabled=0` avoids this",
        ]
    collapse = "by MADV_COLLAPSE" if pages["collapse"] else f"no: {pages['collapse_why']}"
    return [*lines, f"huge pages in shared memory: {collapse} (transparent: {pages['transparent']})"]


def reach_lines(mappers: list[dict[str, Any]]) -> list[str]:
    """Ways of reaching memory, whether they work, and why not."""
    return [f"{way['name']:13} {'works' if way['works'] else 'no':6} {way['why']}" for way in mappers]


def setting_lines(settings: list[dict[str, str]]) -> list[str]:
    """Lines for the settings, each with the value that a rank started here would have, and its meaning."""
    return [
        f"{row['variable']:24} {os.environ.get(row['variable'], row['default']) or '-':8} {row['meaning']}"
        f" (decided by {row['decides']})"
        for row in settings
    ]


def figures_section(machine: dict[str, Any]) -> tuple[str, list[str]]:
    """Figures of the machine, with a title that says where they are from."""
    origin = "" if machine["stored"] else ", not measured yet, so these are built in"
    lines = [
        f"{figure['name']:11} {figure['value']:<10.4g} {figure['meaning']}"
        for figure in machine["figures"]
        if "simulator" not in figure["meaning"]
    ]
    return f"Figures of the machine, by which algorithms are chosen ({machine['file']}{origin})", lines


def algorithm_lines(algorithms: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Rows of each collective."""
    return [f"{name:21} {', '.join(row['name'] for row in rows)}" for name, rows in algorithms.items()]


def placement_lines(placement: dict[str, Any]) -> list[str]:
    """Lines for the NUMA nodes, for the nodes that each word of NEARFIELD_MEMORY means, and for each component's placement."""
    if "error" in placement:
        return [f"nothing can be placed: {placement['error']}"]
    lines = []
    for node in placement["nodes"]:
        free = "" if node["room"] is None else f", {_bytes(node['room'])} free"
        line = (
            f"NUMA node {node['node']}: {_bytes(node['bytes'])}{free}, nearest CPUs {node['cpus'] or 'none'}"
        )
        for figure, unit in (("bandwidth", "MB/s"), ("latency", "ns")):
            if seen := node[figure]:
                line += f", {figure} {seen['value']} {unit}" + ("" if seen["own"] else " (from other CPUs)")
        lines.append(line)
    lines += [f"{word:13} {gets}" for word, gets in placement["words"].items()]
    for component in placement["components"]:
        asked = f" (`{component['asked']}`)" if component["asked"] else ""
        lines.append(f"{component['name']:13} {component['gets']}{asked}: {component['about']}")
    return lines


def _bytes(count: int) -> str:
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << shift:
            return f"{count / (1 << shift):.4g} {unit}"
    return f"{count} B"
