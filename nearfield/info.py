"""`nearfield info`: what this machine offers, out of nearfield-probe, and what is installed."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from rich.console import Console

from nearfield import __version__
from nearfield.bench import host_version
from nearfield.hosts import find_hosts
from nearfield.libraries import library_directory, program


def gather() -> dict[str, Any]:
    """The probe's findings, with version, libraries and hosts. Raises NotBuilt."""
    found = json.loads(
        subprocess.run([str(program("nearfield-probe"))], capture_output=True, text=True).stdout
    )
    libraries = sorted(path.name for path in library_directory().glob("libnearfield*.so"))
    hosts = {name: host_version(host) for name, host in find_hosts().items()}
    return {"version": __version__, "libraries": libraries, "hosts": hosts, **found}


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


def show(as_json: bool) -> None:
    """Prints the findings, as JSON or for people."""
    found = gather()
    if as_json:
        print(json.dumps(found, indent=1))
        return
    console = Console(highlight=False, soft_wrap=True)
    emphasis = (lambda text: f"[bold]{text}[/bold]") if console.is_terminal else str
    topology, cpus = found["topology"], found["cpus"]
    console.print(emphasis("Machine"))
    if "error" in topology:
        console.print(
            f"  caches and packages are not known: {topology['error']} (libhwloc.so.15, Debian's libhwloc15); Linux {found['kernel']}"
        )
    else:
        sizes = ", ".join(f"{level} {_bytes(topology[level])}" for level in ("l1d", "l2", "l3"))
        console.print(
            f"  {topology['packages']} packages, {topology['cores']} cores; {sizes}; Linux {found['kernel']}"
        )
        console.print(f"  groups that share a last-level cache: {', '.join(topology['l3_groups'])}")
    quota = "no quota" if cpus["quota"] is None else f"quota of {cpus['quota']} CPUs"
    console.print(f"  CPUs available: {cpus['available']:g} (allowed {cpus['allowed']}, {quota})")
    if found["session_groups"]:
        console.print(
            "  scheduling: every session is a group of its own. Launchers that give each rank a session (MPICH's) then\n"
            "  make ranks that share CPUs wait longer; `sysctl kernel.sched_autogroup_enabled=0` avoids that"
        )
    pages = found["pages"]
    collapse = "by MADV_COLLAPSE" if pages["collapse"] else f"no: {pages['collapse_why']}"
    console.print(
        f"  huge pages in shared memory: {collapse} (transparent: {pages['transparent']})", markup=False
    )
    console.print(emphasis("Memory, and what NEARFIELD_MEMORY places where"))
    for line in placement_lines(found["placement"]):
        console.print(f"  {line}", markup=False)
    console.print(emphasis("Ways of reaching a peer's memory"))
    for way in found["reach"]:
        console.print(f"  {way['name']:13} {'works' if way['works'] else 'no':6} {way['why']}", markup=False)
    console.print(emphasis("Hosts"))
    for name, version in found["hosts"].items():
        console.print(f"  {name:15} {version}", markup=False)
    console.print(emphasis(f"Libraries of Nearfield {found['version']}"))
    console.print("  " + " ".join(found["libraries"]))
    console.print(emphasis("Settings"))
    for row in found["settings"]:
        value = os.environ.get(row["variable"], row["default"])
        line = f"  {row['variable']:24} {value or '-':8} {row['meaning']} (decided by {row['decides']})"
        console.print(line, markup=False)
    machine = found["machine"]
    origin = "" if machine["stored"] else ", not measured yet: those built in"
    console.print(emphasis("Figures that algorithms are chosen by") + f" ({machine['file']}{origin})")
    for figure in machine["figures"]:
        if "simulator" not in figure["meaning"]:
            console.print(f"  {figure['name']:11} {figure['value']:<10.4g} {figure['meaning']}", markup=False)
    console.print(emphasis("Algorithms"))
    for collective, rows in found["algorithms"].items():
        console.print(f"  {collective:21} {', '.join(row['name'] for row in rows)}")


def placement_lines(placement: dict[str, Any]) -> list[str]:
    """NUMA nodes with what is known of them, what each word leads to, and what each component gets."""
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
