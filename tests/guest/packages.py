"""What the guest is made of, out of Debian's packages: an emulator, a kernel with some modules, and busybox.

All of it is fetched once into build/guest and unpacked there; nothing is installed, and no rights are needed.
"""

from __future__ import annotations

import fcntl
import lzma
import os
import platform
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "build" / "guest"

PROGRAMS = ("qemu-system-x86", "busybox-static")
KERNEL = "linux-image-amd64"  # depends on the present kernel's package (the cloud images lack 9p)
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
WAITING = ["-o", "Acquire::http::Timeout=20", "-o", "Acquire::Retries=1"]
LONGEST = 5 * 60  # seconds of one command of apt


class Unavailable(Exception):
    """There can be no guest here; the text says why."""


@dataclass(frozen=True)
class Parts:
    """Where the parts are; `modules` in the order in which they are to be loaded."""

    root: Path
    kernel: Path
    modules: tuple[Path, ...]

    @property
    def busybox(self) -> Path:
        """The statically linked one."""
        return self.root / "bin/busybox"

    @property
    def emulator(self) -> list[str]:
        """The command line of the emulator, without any machine."""
        share = self.root / "usr/share"
        return [
            str(self.root / "usr/bin/qemu-system-x86_64"),
            "-L",
            str(share / "qemu"),
            "-L",
            str(share / "seabios"),
        ]

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which the emulator finds its libraries."""
        libraries = (self.root / "usr/lib/x86_64-linux-gnu", self.root / "lib/x86_64-linux-gnu")
        return dict(os.environ) | {"LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries))}


def fetch() -> Parts:
    """The parts, fetched where they are missing. Raises Unavailable."""
    if platform.machine() != "x86_64":
        raise Unavailable(f"the guest is an x86-64 machine, this one is {platform.machine()}")
    if missing := [tool for tool in ("apt-get", "apt-cache", "dpkg") if not shutil.which(tool)]:
        raise Unavailable(f"the guest is made of Debian packages, and there is no {missing[0]}")
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _works():
            _make()
    return _parts()


def _parts() -> Parts:
    made = CACHE / "parts"
    return Parts(made / "root", made / "vmlinuz", tuple(sorted((made / "modules").glob("*.ko"))))


def _works() -> bool:
    """Whether all is there and the emulator still finds its libraries, some of which are the system's."""
    parts = _parts()
    if not parts.kernel.exists():
        return False
    asked = subprocess.run([*parts.emulator, "--version"], env=parts.environment, capture_output=True)
    return asked.returncode == 0


def _make() -> None:
    with tempfile.TemporaryDirectory(prefix="new-", dir=CACHE) as made:
        scratch = Path(made)
        for name in ("debs", "kernel", "parts/root", "parts/modules"):
            (scratch / name).mkdir(parents=True)
        programs, kernel = _download(scratch / "debs")
        for deb in programs:
            _unpack(deb, scratch / "parts/root")
        _unpack(kernel, scratch / "kernel")
        order = _in_order(scratch / "kernel")
        for position, (name, code) in enumerate(order.items()):
            (scratch / "parts/modules" / f"{position:02}-{name}.ko").write_bytes(code)
        shutil.move(next((scratch / "kernel/boot").glob("vmlinuz-*")), scratch / "parts/vmlinuz")
        shutil.rmtree(CACHE / "parts", ignore_errors=True)
        (scratch / "parts").rename(CACHE / "parts")
    if not _works():
        raise Unavailable("the emulator out of Debian's packages does not run here")


def _unpack(deb: Path, into: Path) -> None:
    subprocess.run(["dpkg", "-x", str(deb), str(into)], check=True)


def _download(into: Path) -> tuple[list[Path], Path]:
    """Packages of the programs with what they need and is not installed here, and the kernel's."""
    reasons = []
    # The system's lists of packages may be missing or old; then we fetch lists of our own.
    for options in (WAITING, [*WAITING, *_own_lists(into.parent / "apt")]):
        try:
            if reasons:
                _apt(options, "apt-get", "-qq", "-o", "APT::Update::Error-Mode=any", "update")
            simulated = _apt(options, "apt-get", "-s", "install", "--no-install-recommends", *PROGRAMS)
            # What is installed already is not named, but unpacked all the same: paths are then the same everywhere.
            programs = {*re.findall(r"^Inst (\S+)", simulated, re.MULTILINE), *PROGRAMS}
            kernel = re.search(r"Depends: (linux-image-\S+)", _apt(options, "apt-cache", "depends", KERNEL))
            if not kernel:
                raise Unavailable(f"{KERNEL} depends on no kernel")
            _apt(options, "apt-get", "download", *sorted(programs), kernel[1], cwd=into)
        except Unavailable as why:
            reasons.append(str(why))
            continue
        of_kernel = next(into.glob(f"{kernel[1]}_*.deb"))
        return [deb for deb in into.glob("*.deb") if deb != of_kernel], of_kernel
    raise Unavailable("Debian's packages for the guest cannot be had: " + "; ".join(reasons))


def _own_lists(own: Path) -> list[str]:
    for directory in ("state/lists/partial", "cache/archives/partial"):
        (own / directory).mkdir(parents=True, exist_ok=True)
    settings = (
        f"Dir::State={own}/state",
        "Dir::State::status=/var/lib/dpkg/status",
        f"Dir::Cache={own}/cache",
    )
    return [word for setting in settings for word in ("-o", setting)]


def _apt(options: list[str], command: str, *arguments: str, cwd: Path | None = None) -> str:
    """The output of a command of apt. Raises Unavailable with what it complains about."""
    try:
        ended = subprocess.run(
            [command, *options, *arguments],
            cwd=cwd,
            env=dict(os.environ) | {"LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command} took more than {LONGEST} s") from None
    if ended.returncode != 0:
        complaints = [line for line in ended.stderr.splitlines() if line.startswith("E:")] or [ended.stderr]
        raise Unavailable(complaints[0].strip())
    return ended.stdout


def _in_order(unpacked: Path) -> dict[str, bytes]:
    """The code of MODULES and of what they depend on, each after what it needs."""
    files = {
        path.name.split(".")[0].replace("-", "_"): path
        for path in unpacked.glob("lib/modules/*/kernel/**/*.ko*")
    }
    found: dict[str, bytes] = {}

    def add(name: str) -> None:
        if name in found:
            return
        if name not in files:
            raise Unavailable(f"Debian's kernel has no module {name}")
        code = files[name].read_bytes()
        if files[name].suffix == ".xz":
            code = lzma.decompress(code)
        needed = re.search(rb"\0depends=([^\0]*)\0", code)
        for other in filter(None, needed[1].decode().split(",") if needed else []):
            add(other.replace("-", "_"))
        found[name] = code

    for name in MODULES:
        add(name)
    return found
