"""C++ programs that know nothing of MPI run under the preloaded libraries as they do without: most processes of a job are
launchers, shells and compilers. They are those that a machine has which builds Nearfield.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nearfield.libraries import with_nearfield
from tests.mpi.jobs import SANITIZED
from tests.selection import FULL

pytestmark = pytest.mark.skipif(SANITIZED, reason="the heap stays out of programs with a sanitizer")

SOURCE = """
#include <algorithm>
#include <iostream>
#include <map>
#include <string>
#include <vector>
static std::vector<int> before_main(100000, 3);
int main() {
  std::map<std::string, std::vector<long>> rows;
  for (long i = 0; i < 2000; ++i) rows[std::to_string(i * 7919 % 1000)].resize(5000, i);
  long sum = 0;
  for (auto& [name, row] : rows) sum += std::count_if(row.begin(), row.end(), [](long v) { return v % 2; });
  std::cout << sum + before_main.size() << std::endl;
}
"""
BUILD = """
cmake_minimum_required(VERSION 3.20)
project(one CXX)
enable_testing()
add_executable(one one.cpp)
add_test(NAME one COMMAND one)
"""
PLOT = """
import io, sys
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt, numpy as np
figure, axes = plt.subplots()
axes.plot(np.cumsum(np.arange(100000) % 7))
axes.tricontourf(np.arange(50) % 7, np.arange(50) % 11, np.arange(50))
out = io.BytesIO()
figure.savefig(out, format="raw")
print(len(out.getvalue()), sum(out.getvalue()))
"""
PROGRAMS = {
    "cmake": ["cmake", "-S", ".", "-B", "{new}", "-G", "Ninja", "-Wno-dev"],
    "cmake with make": ["cmake", "-S", ".", "-B", "{new}", "-G", "Unix Makefiles"],
    "ninja": ["ninja", "-C", "build", "-t", "commands"],
    "ctest": ["ctest", "--test-dir", "build", "-N"],
    "cpack": ["cpack", "--help"],
    "g++": ["g++", "-std=c++20", "-O2", "-S", "-o", "-", "one.cpp"],
    "what it makes": ["./one"],
    "gold": ["g++", "-fuse-ld=gold", "-o", "{new}", "one.cpp"],
    "apt-cache": ["apt-cache", "dumpavail"],
    "apt-get": ["apt-get", "--simulate", "install", "g++"],
    "apt-config": ["apt-config", "dump"],
    "groff": ["groff", "-man", "-Tascii", "page.1"],
    "gdb": ["gdb", "-q", "-nx", "-batch", "-ex", "info line main", "one"],
    "clang-format": [str(Path(sys.executable).parent / "clang-format"), "one.cpp"],
    "matplotlib": [sys.executable, "-c", PLOT],
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a program, its source, its build and a page."""
    at = tmp_path_factory.mktemp("others")
    (at / "one.cpp").write_text(SOURCE)
    (at / "CMakeLists.txt").write_text(BUILD)
    (at / "page.1").write_text(
        ".TH one 1\n.SH NAME\none \\- counts\n" + ".PP\nSome words, and some more.\n" * 3000
    )
    subprocess.run(["g++", "-std=c++20", "-O1", "-g", "-o", "one", "one.cpp"], cwd=at, check=True)
    subprocess.run(
        ["cmake", "-S", ".", "-B", "build", "-G", "Ninja"], cwd=at, check=True, capture_output=True
    )
    return at


# apt-get takes longest, and does with its lists what apt-cache does.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[FULL] * (name == "apt-get")) for name in PROGRAMS]
)
def test_they_run_as_without(place: Path, name: str) -> None:
    words = PROGRAMS[name]
    if not shutil.which(place / words[0] if words[0].startswith(".") else words[0]):
        pytest.skip(f"{words[0]} is not installed")
    seen = []
    for env in (dict(os.environ), with_nearfield(dict(os.environ))):
        new = place / f"new-{name.replace(' ', '-')}"
        line = [word.replace("{new}", str(new)) for word in words]
        done = subprocess.run(line, cwd=place, env=env, capture_output=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr.decode()
        seen.append(done.stdout)
        shutil.rmtree(new, ignore_errors=True)
        new.unlink(missing_ok=True)
    drop = [line for line in seen[0].splitlines() if b"done (" not in line]
    assert drop == [line for line in seen[1].splitlines() if b"done (" not in line]
