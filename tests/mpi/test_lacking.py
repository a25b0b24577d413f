"""One rank lacks memory, a descriptor or a mapping, at every call of Nearfield's libraries in turn.

Nobody may hang, crash, or be told of success where the data is wrong. NEARFIELD_TEST_WALK=all walks through all places
in the code, NEARFIELD_TEST_WALK=0x..,17 through some places or numbers of calls; otherwise some, spread evenly.
"""

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.mpi.jobs import (
    HEAP,
    LIBRARY,
    PROGRAMS,
    UNKNOWN,
    Completed,
    compile_c,
    compile_library,
    hosts,
    launch,
)
from tests.selection import per_change

RANKS = 3
# Static objects of a library that is being loaded: the loader cannot be told that they could not be made.
LOADING = "fails  nearfield::preload:: preload.cpp"
SECONDS = 20  # far more than a run takes


def injector() -> str:
    """The library that lets calls fail."""
    return compile_library(PROGRAMS / "inject.c", "inject.so", "-fno-builtin")


def run_lacking(host: str, rank: int, at: str, mode: str) -> Completed:
    """A run in which a call of `rank` fails, by its number or its place; 0: none."""
    env = {
        "LD_PRELOAD": f"{injector()}:{LIBRARY}:{HEAP}",
        "NEARFIELD_TEST_FAIL_RANK": str(rank),
        "NEARFIELD_TEST_FAIL_AT": at,
        "NEARFIELD_TEST_FAIL_STACK": "1",
        "NEARFIELD_CHOOSE": "model",  # the same calls in every run
        "NEARFIELD_LOG": "off",
    }
    program = [compile_c(host, "lacking.c"), mode]
    return launch(host, RANKS, program, env=env, timeout=SECONDS, served=UNKNOWN)  # what lacks is the host's


def trouble(job: Completed) -> str:
    """What is wrong with a run; nothing: empty."""
    if job.timed_out:
        return "hangs"
    for sign in ("crashed", "wrong data", "terminate called", "Segmentation fault"):
        if sign in job.text:
            return sign
    through = len(re.findall(r"through", job.stdout))
    if through < RANKS and "error" not in job.text.lower() and job.returncode == 0:
        return "ends early without an error"
    return ""


def where(job: Completed) -> str:
    """The failing call, and Nearfield's functions above it."""
    lines = job.stderr.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith("inject: call")), None)
    if begin is None:
        return "?"
    frames = []
    for line in lines[begin + 1 :]:
        if not (found := re.match(r"(\S*/(lib[^/(]+))\(.*?\+?(0x[0-9a-f]+)?\)\[(0x[0-9a-f]+)\]", line)):
            if line.startswith("/"):
                continue
            break
        if "libnearfield" in found[2] and found[3]:
            frames.append((found[1], found[3]))
    named = []
    for library, offset in frames[:8]:
        text = subprocess.run(
            ["addr2line", "-Cfse", library, offset], capture_output=True, text=True
        ).stdout.splitlines()
        if len(text) == 2 and not re.match(r"operator new|std::|\?\?", text[0]):
            named.append(f"{text[0].split('(')[0]} {text[1].split(' ')[0]}")
    return lines[begin] + "  " + " < ".join(named)


def is_hosts(job: Completed) -> bool:
    """Whether the host asked for the memory that it did not get: the shared heap only passes such calls on."""
    kind = re.search(r"inject: call \d+, (\w+), fails", job.stderr)
    if not kind or kind[1] not in MEMORY:
        return False
    stack = job.stderr.partition("inject: call")[2].splitlines()[1:]
    callers = [line for line in stack if not re.match(r"\S*/(inject|libnearfield-heap|libc|libstdc)\b", line)]
    return bool(callers) and re.match(r"\S*/libmpi", callers[0]) is not None


def some(places: list[str], most: int) -> list[str]:
    """The calls to let fail."""
    chosen = os.environ.get("NEARFIELD_TEST_WALK", "")
    if chosen and chosen != "all":
        return chosen.split(",")
    if chosen or len(places) <= most:
        return places
    return [places[k * (len(places) - 1) // (most - 1)] for k in range(most)]


MEMORY = {"malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign"}


def walk(host: str, rank: int, memory: bool, most: int, mode: str = "abort") -> list[str]:
    """All runs, of calls for memory or of all others; a line for each that went wrong."""
    plain = run_lacking(host, rank, "0", mode)
    assert plain.stdout.count("through, 0 errors") == RANKS, plain.text
    told = re.findall(r"inject: place (0x\w+) (\w+)", plain.stderr)
    assert len(told) > 100
    places = [place for place, kind in told if (kind in MEMORY) == memory]

    def one(place: str) -> str:
        job = run_lacking(host, rank, place, mode)
        what = "" if is_hosts(job) else trouble(job)
        found = f"{place}: {what}; {where(job)}" if what else ""
        return "" if LOADING in found else found

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [line for line in pool.map(one, some(places, most)) if line]
    if log := os.environ.get("NEARFIELD_TEST_WALK_LOG"):
        Path(log).write_text("\n".join([f"{len(places)} places", *found, ""]))
    return found


@pytest.mark.parametrize("rank", per_change([1, 0]))
@pytest.mark.parametrize("host", per_change(hosts("mpich", "openmpi")))
def test_descriptors_mappings_and_files_may_lack(host: str, rank: int) -> None:
    found = walk(host, rank, False, 12 if host == "mpich" else 6)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("rank", per_change([1, 0]))
@pytest.mark.parametrize("host", per_change(hosts("mpich", "openmpi")))
def test_memory_may_lack(host: str, rank: int) -> None:
    found = walk(host, rank, True, 12 if host == "mpich" else 6)
    assert not found, "\n".join(found)
