"""Compiles every source with clang and checks it with clang-tidy (.clang-tidy), by the compile commands of a build directory.

python3 scripts/clang.py BUILD [PATH PART ...]: only files whose path holds one of the parts.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TAKES_ARGUMENT = {"-o", "-MT", "-MF"}
NOT_FOR_CLANG = {"-c", "-MD", "-g1", "--param=ggc-min-heapsize=400000"}
# clang 14 knows _Float16 only where the processor has it.
EXTRA = ["-Wno-unknown-warning-option", "-Wno-non-power-of-two-alignment"]
EXTRA_FOR = {"engine/reducing/fold.cpp": ["-mavx512fp16"]}
# Highway's kernels for every instruction set, and tests, are only compiled.
ONLY_COMPILED = (
    "tests/",
    "bench/",
    "engine/reducing/fold_simd.cpp",
    "engine/reducing/wide.cpp",
    "engine/copying/kernels.cpp",
)


# clang 14 does not know the coroutines of gcc's library.
NOT_AT_ALL = ("bench/bodies.cpp",)


def tool(name: str) -> str:
    """The path of a tool of clang: Debian's version, else any other."""
    found = shutil.which(f"{name}-14") or shutil.which(name)
    if not found:
        sys.exit(f"{name} is not installed; run scripts/setup.sh")
    return found


def arguments(command: str) -> list[str]:
    """The arguments of a compile command that clang needs."""
    # Without precompiled headers, which are gcc's and hide what a file forgets to include.
    words = shlex.split(re.sub(r"-Winvalid-pch|-include \S+cmake_pch\.hxx", "", command))
    words = words[words.index(next(w for w in words if w.endswith(("++", "g++-12")))) + 1 :]
    kept, skip = [], False
    for word in words:
        if skip or word in TAKES_ARGUMENT:
            skip = not skip
        elif word not in NOT_FOR_CLANG:
            kept.append(word)
    return kept


def look(entry: dict) -> tuple[str, float, str]:
    """Checks one file. Returns its name, the seconds and the findings."""
    path = str(Path(entry["file"]).relative_to(ROOT))
    words = [word for word in arguments(entry["command"]) if word != entry["file"]]
    words += EXTRA + EXTRA_FOR.get(path, [])
    if path.startswith(ONLY_COMPILED):
        command = [tool("clang++"), "-fsyntax-only", *words, entry["file"]]
    else:
        command = [tool("clang-tidy"), "--quiet", entry["file"], "--", *words]
    begin = time.monotonic()
    done = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True)
    return path, time.monotonic() - begin, done.stdout + done.stderr if done.returncode else ""


def main() -> None:
    """Checks every file once; files of the shim only as they are compiled for the first ABI."""
    build, parts = Path(sys.argv[1]), sys.argv[2:]
    entries: dict[str, dict] = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        wanted = not parts or any(part in entry["file"] for part in parts)
        if (
            entry["file"].endswith(".cpp")
            and not entry["file"].endswith(NOT_AT_ALL)
            and wanted
            and "NEARFIELD_MODEL" not in entry["command"]
        ):
            entries.setdefault(entry["file"], entry)
    # The longest first.
    order = sorted(entries.values(), key=lambda each: -Path(each["file"]).stat().st_size)
    bad = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, seconds, found in pool.map(look, order):
            if found:
                bad += 1
                print(f"{path}: {found}", flush=True)
            if os.environ.get("VERBOSE"):
                print(f"{seconds:6.1f} s {path}", flush=True)
    sys.exit(f"clang finds something in {bad} of {len(order)} files" if bad else 0)


main()
