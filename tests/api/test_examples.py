"""The examples of the C API, in C and in Python, each by itself and in one group with the other."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/groups"
LIBRARIES = ROOT / "build/release/lib"


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    program = tmp_path_factory.mktemp("average") / "average"
    words = [
        "gcc",
        "-std=c11",
        "-D_DEFAULT_SOURCE",
        "-Wall",
        "-Wextra",
        "-Werror",
        str(EXAMPLE / "average.c"),
    ]
    words += [f"-I{ROOT}/include", f"-L{LIBRARIES}", "-lnearfield-engine", "-o", str(program)]
    subprocess.run(words, check=True)
    return [str(program)]


@pytest.mark.parametrize("members", ["cc", "pp", "cpc"])
def test_members_of_any_language_meet(in_c: list[str], tmp_path: Path, members: str) -> None:
    programs = {"c": in_c, "p": [sys.executable, str(EXAMPLE / "average.py")]}
    env = os.environ | {
        "LD_LIBRARY_PATH": str(LIBRARIES),
        "PYTHONPATH": str(ROOT),
        "NEARFIELD_LIBDIR": str(LIBRARIES),
        "PYTHONWARNINGS": "ignore",
    }
    running = [
        subprocess.Popen(
            [*programs[language], str(rank), str(len(members)), str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
        )
        for rank, language in enumerate(members)
    ]
    average = sum(range(len(members))) / len(members)
    for rank, process in enumerate(running):
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, out + errors
        assert f"the average begins with {average:g}, {average + 1:g}" in out
        assert f"rank {rank} has a message of 4 bytes from rank {(rank - 1) % len(members)}" in out


def test_an_exchange_that_fails_is_raised(in_c: list[str]) -> None:
    text = """
from nearfield import engine
def exchange(mine):
    raise OSError("no way to the others")
try:
    engine.join(0, 2, exchange)
except OSError as error:
    print("raised:", error)
"""
    env = os.environ | {
        "PYTHONPATH": str(ROOT),
        "NEARFIELD_LIBDIR": str(LIBRARIES),
        "PYTHONWARNINGS": "ignore",
    }
    done = subprocess.run([sys.executable, "-c", text], env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout == "raised: no way to the others\n", done.stdout + done.stderr
