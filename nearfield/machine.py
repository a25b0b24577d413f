"""A description of this machine, to be stored with results. It leaves out what the system does not tell."""

from __future__ import annotations

import functools
import os
import platform
import re
from pathlib import Path
from typing import Any

CPUS = Path("/sys/devices/system/cpu")
CPU_INFO = Path("/proc/cpuinfo")


@functools.cache
def machine() -> dict[str, Any]:
    """model (the CPU's name), family, model_number, virtual, cpus (that this process may use), caches, kernel."""
    about: dict[str, str] = {}
    for line in text_of(CPU_INFO).splitlines():
        key, _, value = line.partition(":")
        about.setdefault(key.strip(), value.strip())
    cpus = sorted(os.sched_getaffinity(0))
    return {
        "model": about.get("model name", "unknown CPU"),
        "family": about.get("cpu family"),
        "model_number": about.get("model"),
        "virtual": "hypervisor" in about.get("flags", "").split(),
        "cpus": len(cpus),
        "caches": _caches(cpus[0]),
        "kernel": f"{platform.system()} {platform.release()}",
    }


@functools.cache
def describe_machine() -> str:
    """The machine in one line: CPU with family and model, CPUs that this process may use, caches and who shares them, kernel."""
    about = machine()
    name = about["model"]
    if about["family"]:
        name += f" (family {about['family']}, model {about['model_number'] or '?'})"
    if about["virtual"]:
        name += ", virtual"
    return ", ".join([name, f"{about['cpus']} CPUs", *about["caches"], about["kernel"]])


def machine_word() -> str:
    """A word for names of files: amd-epyc-25-17."""
    about = machine()
    name = re.sub(r"\((R|TM|r|tm)\)|@.*|\b(CPU|[Pp]rocessor|[0-9]+-[Cc]ore)\b", " ", about["model"])
    words = re.findall(r"[a-z0-9]+", name.lower())[:3]
    return "-".join([*words, *(about[key] for key in ("family", "model_number") if about[key])])


def _caches(cpu: int) -> list[str]:
    """L1d 32K, L2 1024K, L3 32768K of CPUs 0-7."""
    found = []
    for index in sorted((CPUS / f"cpu{cpu}" / "cache").glob("index*")):
        level, kind, size, shared = (
            text_of(index / name).strip() for name in ("level", "type", "size", "shared_cpu_list")
        )
        if kind == "Instruction" or not (level and size):
            continue
        of = f" of CPUs {shared}" if level == "3" and shared else ""
        found.append(f"L{level}{'d' if kind == 'Data' else ''} {size}{of}")
    return found


def text_of(path: Path) -> str:
    """The contents of a file; "" if it does not exist, as in sandboxes."""
    try:
        return path.read_text()
    except OSError:
        return ""
