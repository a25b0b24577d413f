"""Jobs over the pretended nodes of tests/nodes/bed.py, started by the hosts' own launchers with an agent for ssh.

Between nodes the hosts use their own TCP, within a node their own shared memory, as on a cluster without a fast network.
As with ssh nothing of the launcher's environment reaches another node by itself: what the ranks need is handed over by
the launcher's means, by mpiexec of Open MPI only what it is told (-x).
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from nearfield.libraries import ROOT
from tests.nodes.bed import HEAD, Nodes

# Each rank writes to files of its own: hosts mix the lines of several ranks.
INTO_FILES = (
    'exec "$@" >"$0/out.${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" 2>"$0/err.${PMI_RANK:-$OMPI_COMM_WORLD_RANK}"'
)


class Launcher(Protocol):
    """What has to be known of a host: nearfield.hosts.Host is one."""

    @property
    def name(self) -> str: ...
    @property
    def mpiexec(self) -> Path: ...


class Manager(Protocol):
    """A workload manager that starts jobs instead of an agent for ssh: tests/nodes/slurm.py has one."""

    @property
    def environment(self) -> dict[str, str]: ...
    def run_command(self, placement: Sequence[int], program: Sequence[str]) -> list[str]: ...
    def allocate_command(self, launcher: Sequence[str]) -> list[str]: ...


@dataclass(frozen=True)
class Ended:
    """How a job ended; `out` and `err` have a text per rank, `launcher` is what its launcher printed."""

    returncode: int
    launcher: str
    out: list[str]
    err: list[str]
    seconds: float
    timed_out: bool

    @property
    def text(self) -> str:
        """Everything that was printed."""
        return "".join([*self.out, *self.err, self.launcher])


def blocks(*sizes: int) -> list[int]:
    """The node of each rank: first sizes[0] ranks on node 0, then those of node 1, ..."""
    return [node for node, size in enumerate(sizes) for _ in range(size)]


def even_blocks(ranks: int, nodes: int) -> list[int]:
    """The node of each rank: blocks, as equal as can be."""
    return blocks(*(ranks * (i + 1) // nodes - ranks * i // nodes for i in range(nodes)))


def round_robin(*sizes: int) -> list[int]:
    """The node of each rank, dealt out in turn until node i has sizes[i] of them."""
    turns = ((turn, node) for node, size in enumerate(sizes) for turn in range(size))
    return [node for _, node in sorted(turns)]


def host_settings(host: Launcher, env: dict[str, str]) -> dict[str, str]:
    """What a job over nodes needs in `env`, which is the environment of a job of `host` on one node."""
    if host.name.endswith("openmpi"):
        # All nodes share the CPUs, which no node can know.
        return {"OMPI_MCA_pml": "ob1", "OMPI_MCA_mpi_yield_when_idle": "1"}
    if host.name == "impi":  # its wheel has no libfabric; MPICH's has
        paths = [env.get("LD_LIBRARY_PATH", ""), str(ROOT / ".venv/lib/mpich")]
        return {"I_MPI_FABRICS": "shm:ofi", "FI_PROVIDER": "tcp", "LD_LIBRARY_PATH": os.pathsep.join(paths)}
    return {}


def launch_command(
    nodes: Nodes,
    host: Launcher,
    placement: Sequence[int],
    program: Sequence[str],
    handed_over: Sequence[str] = (),
    manager: Manager | None = None,
) -> list[str]:
    """The command line, for the head, that starts `program` with rank i on node placement[i].

    `handed_over` names variables of the environment that the ranks need. To MPICH a node is several (MPI_COMM_TYPE_SHARED
    gives parts of it) where its launcher cannot say better: _misunderstood(), under Slurm any but equal blocks, and of
    Debian's MPICH all ranks that neither follow each other nor come in turn.
    """
    if manager and host.name == "mpich":
        return manager.run_command(placement, program)
    options = _options(nodes, host.name, placement, program, handed_over, "" if manager else nodes.agent)
    command = [str(host.mpiexec), *options]
    return manager.allocate_command(command) if manager else command


def _options(
    nodes: Nodes,
    host: str,
    placement: Sequence[int],
    program: Sequence[str],
    handed_over: Sequence[str],
    agent: str,
) -> list[str]:
    """The options of the host's mpiexec; `agent` is empty where it finds out by itself how to reach nodes."""
    runs = [(nodes.names[node], len(list(ranks))) for node, ranks in itertools.groupby(placement)]
    job = ["-n", str(len(placement)), *program]
    if host.endswith("openmpi"):
        reach = ["--mca", "plm_rsh_agent"] if host == "debian-openmpi" else ["--prtemca", "plm_ssh_agent"]
        common = [*(reach + [agent] if agent else []), "--bind-to", "none"]
        variables = [word for name in handed_over for word in ("-x", name)]
        if len(runs) == len(set(placement)):
            return [*common, *variables, "--host", _slots(runs), *job]
        room = {node: placement.count(nodes.names.index(node)) for node, _ in runs}
        for i, (node, size) in enumerate(runs):
            here = ["--host", f"{node}:{room[node]}", "-n", str(size)]
            common += [*([":"] if i else []), *variables, *here, *program]
        return common
    if host == "impi":
        machines = nodes.files / f"machines{len(list(nodes.files.iterdir()))}"
        machines.write_text("".join(f"{node}:{size}\n" for node, size in runs))
        reach = ["-bootstrap", "ssh", "-bootstrap-exec", agent] if agent else []
        return [*reach, "-machinefile", str(machines), *job]
    reach = ["-launcher", "ssh", "-launcher-exec", agent] if agent else []
    if host == "debian-mpich" or _misunderstood(placement):
        return [*reach, "-hosts", _slots(_once(runs)), *job]
    used = sorted(set(placement))
    slots = [(nodes.names[node], placement.count(node)) for node in used]
    numbers = ",".join(str(used.index(node)) for node in placement)
    return [*reach, "-bind-to", "none", "-hosts", _slots(slots), "-rankmap", f"(vector,{numbers})", *job]


def _slots(runs: list[tuple[str, int]]) -> str:
    return ",".join(f"{node}:{size}" for node, size in runs)


def _once(runs: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """The shortest beginning that gives all of `runs` when it is repeated."""
    for length in range(1, len(runs)):
        if all(runs[i] == runs[i % length] for i in range(len(runs))):
            return runs[:length]
    return runs


def _misunderstood(placement: Sequence[int]) -> bool:
    """Whether MPICH 5.0.2's launcher may tell the ranks another placement: it loses what follows a part that is repeated."""
    placement, size = list(placement), len(placement)
    for start in range(size):
        for length in range(2, (size - start) // 2 + 1):
            part, end = placement[start : start + length], start + length
            while placement[end : end + length] == part:
                end += length
            if len(set(part)) > 1 and end > start + length and end < size:
                return True
    return False


class Job:
    """A job that runs over nodes, rank i on node placement[i]; wait() ends it."""

    def __init__(
        self,
        nodes: Nodes,
        host: Launcher,
        placement: Sequence[int],
        program: Sequence[str],
        env: dict[str, str],
        manager: Manager | None = None,
    ) -> None:
        """`env` is the whole environment of a job of `host` on one node; `manager` starts it instead of an agent for ssh."""
        self.nodes, self.ranks = nodes, len(placement)
        self._files = nodes.files / f"job{len(list(nodes.files.iterdir()))}"
        self._files.mkdir()
        env = env | host_settings(host, env) | (manager.environment if manager else {})
        needed = [
            name
            for name, value in env.items()
            if os.environ.get(name) != value or name.startswith("NEARFIELD")
        ]
        command = launch_command(
            nodes, host, placement, ["sh", "-c", INTO_FILES, str(self._files), *program], needed, manager
        )
        self._started = time.monotonic()
        with open(self._files / "launcher", "w") as output:
            self.launcher = subprocess.Popen(
                nodes.enter(HEAD, command), env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def output(self, rank: int) -> str:
        """What a rank has printed so far."""
        path = self._files / f"out.{rank}"
        return path.read_text() if path.exists() else ""

    def wait(self, timeout: float) -> Ended:
        """Waits until the job has ended; after `timeout` seconds everything on the nodes is killed."""
        timed_out = False
        try:
            self.launcher.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            self.nodes.kill_all()
            self.launcher.wait()
        texts = {
            kind: [self._read(f"{kind}.{rank}") for rank in range(self.ranks)] for kind in ("out", "err")
        }
        launcher = self._read("launcher")
        shutil.rmtree(self._files)
        seconds = time.monotonic() - self._started
        return Ended(self.launcher.returncode, launcher, **texts, seconds=seconds, timed_out=timed_out)

    def _read(self, name: str) -> str:
        path = self._files / name
        return path.read_text(errors="replace") if path.exists() else ""


def run_job(
    nodes: Nodes,
    host: Launcher,
    placement: Sequence[int],
    program: Sequence[str],
    env: dict[str, str],
    timeout: float = 60,
    manager: Manager | None = None,
) -> Ended:
    """Runs a job to its end, see Job."""
    return Job(nodes, host, placement, program, env, manager).wait(timeout)
