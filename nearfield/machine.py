"""This machine in a line, to stand beside what was measured on it."""

from __future__ import annotations

import functools
import os
import platform
from pathlib import Path

CPUS = Path("/sys/devices/system/cpu")


@functools.cache
def describe_machine() -> str:
    """CPU with family and model, caches and who shares them, CPUs that this process may use, kernel."""
    about: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        about.setdefault(key.strip(), value.strip())
    name = about.get("model name", "unknown CPU")
    if "cpu family" in about:
        name += f" (family {about['cpu family']}, model {about.get('model', '?')})"
    if "hypervisor" in about.get("flags", "").split():
        name += ", virtual"
    cpus = sorted(os.sched_getaffinity(0))
    parts = [name, f"{len(cpus)} CPUs", *_caches(cpus[0]), f"{platform.system()} {platform.release()}"]
    return ", ".join(parts)


def _caches(cpu: int) -> list[str]:
    """L1d 32K, L2 1024K, L3 32768K of CPUs 0-7."""
    found = []
    for index in sorted((CPUS / f"cpu{cpu}" / "cache").glob("index*")):
        level, kind, size, shared = (
            (index / name).read_text().strip() for name in ("level", "type", "size", "shared_cpu_list")
        )
        if kind == "Instruction":
            continue
        of = f" of CPUs {shared}" if level == "3" else ""
        found.append(f"L{level}{'d' if kind == 'Data' else ''} {size}{of}")
    return found
