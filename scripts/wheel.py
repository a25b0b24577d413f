"""Builds the wheel, checks that it runs on all systems that its platform tag promises, and names it by that tag.

python3 scripts/wheel.py [--aarch64] [--build DIRECTORY] [--out DIRECTORY]

--aarch64 cross-compiles (cmake/aarch64.cmake). --build names a build directory whose objects are reused; one of the preset `release`
will do. Needs pip, wheel and pyelftools; also scikit-build-core, unless pip can fetch it.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

ROOT = Path(__file__).resolve().parents[1]
GLIBC = (2, 28)
# The newest that a system with that C library has (PEP 600, manylinux_2_28).
NEWEST = {"GLIBC": GLIBC, "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}
SYSTEMS = re.compile(
    r"(libc|libm)\.so\.6|libdl\.so\.2|libpthread\.so\.0|libgcc_s\.so\.1|ld-linux-[\w-]+\.so\.\d"
)
MOST = 9_000_000  # bytes of the file


def objects_of(wheel: Path) -> Iterator[tuple[str, ELFFile]]:
    """Its libraries and programs."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            if data.startswith(b"\x7fELF"):
                yield name, ELFFile(io.BytesIO(data))


def complaints(wheel: Path) -> list[str]:
    """Texts on what prevents the wheel from running on every system with that C library, or makes it needlessly large."""
    found = [] if wheel.stat().st_size <= MOST else [f"{wheel.name} has {wheel.stat().st_size} bytes"]
    for name, elf in objects_of(wheel):
        found += [f"{name}: {why}" for why in _complaints_about(elf)]
    return found


def _complaints_about(elf: ELFFile) -> Iterator[str]:
    if elf.get_section_by_name(".symtab") or elf.get_section_by_name(".debug_info"):
        yield "it is not stripped"
    for section in elf.iter_sections():
        if isinstance(section, GNUVerNeedSection):
            for _, versions in section.iter_versions():
                yield from (f"it needs {one.name}" for one in versions if _is_newer(one.name))
        if isinstance(section, DynamicSection):
            for tag in section.iter_tags():
                if tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH"):
                    yield "it has an RPATH"
                if tag.entry.d_tag == "DT_NEEDED" and not SYSTEMS.fullmatch(tag.needed):
                    yield f"it needs {tag.needed}"


def _is_newer(version: str) -> bool:
    word, _, numbers = version.partition("_")
    if not re.fullmatch(r"[\d.]+", numbers):
        return version == "GLIBC_PRIVATE"
    return tuple(map(int, numbers.split("."))) > NEWEST.get(word, (0,))


def build(out: Path, directory: Path, machine: str) -> Path:
    """Builds it for a machine, in that build directory; the wheel, which has its final name."""
    env = dict(os.environ)
    words = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--disable-pip-version-check",
        "--no-deps",
        str(ROOT),
    ]
    words += ["-C", f"build-dir={directory}"]
    if machine == "aarch64":
        words += ["-C", f"cmake.args=--toolchain={ROOT}/cmake/aarch64.cmake"]
        env["_PYTHON_HOST_PLATFORM"] = "linux-aarch64"
    if importlib.util.find_spec("scikit_build_core"):
        words.append("--no-build-isolation")
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([*words, "-w", scratch], check=True, env=env)
        (built,) = Path(scratch).glob("*.whl")
        if found := complaints(built):
            raise SystemExit("\n".join(found))
        tag = f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{machine}"
        words = [sys.executable, "-m", "wheel", "tags", "--remove", "--platform-tag", tag, str(built)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        (tagged,) = Path(scratch).glob("*.whl")
        out.mkdir(parents=True, exist_ok=True)
        target = out / tagged.name
        target.write_bytes(tagged.read_bytes())
    return target


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--aarch64", action="store_true")
    parser.add_argument("--build", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "build/dist")
    asked = parser.parse_args()
    machine = "aarch64" if asked.aarch64 else os.uname().machine
    print(build(asked.out, (asked.build or ROOT / f"build/wheel-{machine}").resolve(), machine))


if __name__ == "__main__":
    main()
