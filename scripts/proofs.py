#!/usr/bin/env python3
"""Runs the models of the protocols (tests/engine/model), which are proofs. tests/engine/model/proofs.json records what each proof
explored, and a digest of its sources. Proofs compile the engine once more, so they run only if their sources have changed.

    proofs.py --check             fails when sources have changed and the proofs have not been renewed; runs nothing
    proofs.py --rerun [NAME ...]  runs proofs and compares what they explore with the record
    proofs.py --renew [NAME ...]  runs proofs and records what they explore

NAME is a protocol, such as windows. Without a name, the proofs whose sources have changed run; with --all, all of them. --rerun
fails if a proof does not hold, explores something else than the record says, or has sources that the record does not have yet.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODELS = "tests/engine/model"
RECORD = f"{MODELS}/proofs.json"
LONGEST_S = 7200

# What a proof depends on: files, and folders with all that lies in them, whose code runs while it explores or lays out
# the words that it explores. Declared, since the compiler says too much: tests/engine/model/members.hpp includes all
# of the engine's state, and each new setting or cost would make every proof stale. Whatever has shared words has to be
# in here, or below among what has no model; --check sees to that.
EXPLORER = (
    f"{MODELS}/atomic.hpp",
    f"{MODELS}/atomic_ref.hpp",
    f"{MODELS}/explore.cpp",
    f"{MODELS}/explore.hpp",
    "engine/base/atomic.hpp",
    "engine/base/atomic_ref.hpp",
)
MEMBERS = (
    *EXPLORER,
    f"{MODELS}/members.cpp",
    f"{MODELS}/members.hpp",
    "engine/creation",
    "engine/fibers",
    "engine/memory/arena.cpp",
    "engine/memory/arena.hpp",
    "engine/memory/collapsing.hpp",
    "engine/memory/copy_buffers.cpp",
    "engine/memory/copy_buffers.hpp",
    "engine/reach/mailbox.cpp",
    "engine/reach/mailbox.hpp",
    "engine/reach/in_flight_buffers.hpp",
    "engine/reach/peers.cpp",
    "engine/reach/peers.hpp",
    "engine/reach/attach_agreement.cpp",
    "engine/reach/attach_agreement.hpp",
    "engine/team",
    "engine/context",
    "engine/waiting",
)
SCRIPTS = (f"{MODELS}/operations.cpp", f"{MODELS}/operations.hpp")
PROTOCOLS = {
    "board": (*EXPLORER, "engine/messages/blocks.hpp", "engine/messages/board.hpp"),
    "memory": EXPLORER,
    "messages": (*MEMBERS, "engine/messages", "engine/copying/handover.hpp", "engine/copying/landing.hpp"),
    "sleeping": (*EXPLORER, "engine/waiting/wake_word.cpp", "engine/waiting/wake_word.hpp"),
    "suspension": (*MEMBERS, *SCRIPTS, "engine/messages"),
    "team": (*MEMBERS, "engine/collectives/pieces"),
    "contexts": (*MEMBERS, *SCRIPTS),
    "windows": (*MEMBERS, "engine/windows"),
}
WITHOUT_A_MODEL = (
    "engine/api",  # a counter of each member that only grows; the rest of one process
    "engine/base/globals.hpp",  # of one process
    "engine/base/made.hpp",  # of one process
    "engine/choosing",  # figures of trials, of which any will do
    "engine/copying",  # of one process
    "engine/machine",  # two members that measure, by a word each, which only grows
    "engine/reach/forks.cpp",  # of one process
    "engine/reach/heap_mapper.cpp",  # of one process
    "engine/tuning",  # of one process
    "engine/hang_report",  # tools may read what is half written
)
SHARED_WORDS = re.compile(r"\b(?:Atomic|AtomicRef|std::atomic|std::atomic_ref)<|\bfull_fence\b")
TOKENS = re.compile(
    r"""//[^\n]*|/\*.*?\*/|(?P<kept>"(?:\\.|[^"\\])*"|(?<!\w)'(?:\\.|[^'\\\n])+'|\w+|\S)""", re.DOTALL
)


# ---------------------------------------------------------------- sources
def files_of(names: tuple[str, ...]) -> list[Path]:
    """The files among `names`, and all files in the folders among them."""
    files: set[Path] = set()
    for name in names:
        path = ROOT / name
        files.update(path.rglob("*") if path.is_dir() else [path])
    return sorted(path for path in files if not path.is_dir())


def digest(files: list[Path]) -> str:
    """A digest of the files' names and tokens. Comments and format do not change it."""
    found = hashlib.sha256()
    for path in files:
        tokens = (match["kept"] for match in TOKENS.finditer(path.read_text()))
        found.update("\n".join([str(path.relative_to(ROOT)), *filter(None, tokens), ""]).encode())
    return found.hexdigest()[:32]


def digest_of(protocol: str) -> str:
    return digest([*files_of(PROTOCOLS[protocol]), ROOT / MODELS / f"{protocol}_test.cpp"])


def stale(record: dict) -> list[str]:
    """The protocols whose sources are not those that their proofs ran on."""
    return [name for name in PROTOCOLS if record.get(name, {}).get("sources") != digest_of(name)]


def unclaimed() -> list[str]:
    """Files with shared words that belong to no protocol."""
    claimed = set(files_of(tuple(name for names in (*PROTOCOLS.values(), WITHOUT_A_MODEL) for name in names)))
    return [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "engine").rglob("*"))
        if path.suffix in (".cpp", ".hpp", ".h")
        and path not in claimed
        and SHARED_WORDS.search(path.read_text())
    ]


# ---------------------------------------------------------------- what is explored
def explored(report: dict) -> dict[str, list[str]]:
    """For each proof, lines on its explorations, from GoogleTest's report; explorations of one kind share a line."""
    proofs = {}
    for suite in report["testsuites"]:
        for test in suite["testsuite"]:
            kinds: dict[str, list[dict[str, str]]] = {}
            for name, text in test.items():
                if not name.startswith("explored "):
                    continue
                settings, _, found = text.partition(" found=")
                values = dict(pair.split("=") for pair in settings.split()) | {"found": found}
                kind = "{members} members, {memory}, {preemptions} preemptions".format(**values)
                if values["mutation"] != "none":
                    kind += f", {values['mutation']}"
                kinds.setdefault(kind, []).append(values)
            proofs[f"{test['classname']}.{test['name']}"] = [
                f"{kind}: {summary(all_of)}" for kind, all_of in kinds.items()
            ]
    return proofs


def summary(explorations: list[dict[str, str]]) -> str:
    states, runs = (sum(int(each[what]) for each in explorations) for what in ("states", "runs"))
    text = f"{len(explorations)} explored, {states} states in {runs} runs"
    if naps := max(int(each["naps"]) for each in explorations):
        text += f", at most {naps} naps"
    found = Counter(each["found"] for each in explorations if each["found"])
    if not found:
        return f"{text}; none fails"
    return f"{text}; found: " + ", ".join(f"{what} ({times})" for what, times in found.items())


def build(directory: Path, protocols: list[str]) -> None:
    if not (directory / "build.ninja").exists():
        subprocess.run(["cmake", "--preset", directory.name], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    # ctest runs several of us.
    with (directory / "proofs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        targets = [f"model_{name}" for name in protocols]
        if subprocess.run(["ninja", "-C", directory, "--quiet", *targets]).returncode:
            sys.exit("the models cannot be built")


def run(directory: Path, protocol: str) -> dict[str, list[str]] | None:
    """Runs a protocol's proofs. Returns what they have explored; None if one of them does not hold."""
    begin = time.monotonic()
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [
            directory / f"bin/model_{protocol}",
            "--gtest_brief=1",
            f"--gtest_output=json:{report.name}",
        ]
        try:
            done = subprocess.run(
                ["nice", *command],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=LONGEST_S,
            )
        except subprocess.TimeoutExpired:
            print(f"{protocol}: does not end within {LONGEST_S} s", flush=True)
            return None
        holds = done.returncode == 0
        print(
            f"{protocol}: {'holds' if holds else 'DOES NOT HOLD'} ({time.monotonic() - begin:.0f} s)",
            flush=True,
        )
        if not holds:
            print(done.stdout, flush=True)
            return None
        return explored(json.loads(Path(report.name).read_text()))


# ---------------------------------------------------------------- the command
def read() -> dict:
    path = ROOT / RECORD
    return json.loads(path.read_text()) if path.exists() else {}


def write(protocol: str, sources: str, proofs: dict[str, list[str]]) -> None:
    record = read() | {protocol: {"sources": sources, "proofs": proofs}}
    text = json.dumps({name: record[name] for name in PROTOCOLS if name in record}, indent=1)
    (ROOT / RECORD).write_text(text + "\n")


def differences(recorded: dict, now: dict) -> list[str]:
    return [
        f"{proof}: explored {now.get(proof)}, recorded {recorded.get(proof)}"
        for proof in sorted(recorded.keys() | now.keys())
        if recorded.get(proof) != now.get(proof)
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    doing = parser.add_mutually_exclusive_group(required=True)
    for name in ("check", "rerun", "renew"):
        doing.add_argument(f"--{name}", action="store_const", const=name, dest="doing")
    parser.add_argument("protocols", nargs="*", metavar="NAME", help=", ".join(PROTOCOLS))
    parser.add_argument("--all", action="store_true", help="every protocol")
    parser.add_argument(
        "--build", type=Path, default=ROOT / "build/release", help="the directory to build in"
    )
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.protocols) - set(PROTOCOLS):
        parser.error(f"no such protocol: {', '.join(unknown)}")

    if files := unclaimed():
        print(f"shared words of no protocol: {', '.join(files)}; scripts/proofs.py has the table")
        return 1
    record = read()
    old = stale(record)
    wanted = list(PROTOCOLS) if chosen.all else chosen.protocols or old
    failed = False
    if old:
        print(f"proofs that ran on other sources: {', '.join(old)}", flush=True)
    if chosen.doing != "check" and wanted:
        digests = {name: digest_of(name) for name in wanted}
        build(chosen.build, wanted)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for name, proofs in zip(
                wanted, pool.map(lambda name: run(chosen.build, name), wanted), strict=True
            ):
                if proofs is None:
                    failed = True
                elif chosen.doing == "renew":
                    write(name, digests[name], proofs)
                elif name not in old and (told := differences(record[name]["proofs"], proofs)):
                    failed = True
                    print(f"{name}: the record says otherwise\n  " + "\n  ".join(told))
        old = stale(read())
    if chosen.doing != "check":
        old = [name for name in old if name in wanted]
    if old:
        print(f"to be renewed and committed: scripts/proofs.py --renew {' '.join(old)}")
    return int(failed or bool(old))


if __name__ == "__main__":
    sys.exit(main())
