"""Slurm over the pretended nodes of tests/nodes/bed.py: its daemons without accounts, secrets or files outside the bed.

MPICH starts by srun itself (PMI-2), placed by a list of nodes; other hosts by their own launchers in an allocation, which
they find out about and use srun instead of ssh.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Sequence

from tests.nodes.bed import HEAD, Nodes, Unavailable

TOOLS = ("slurmctld", "slurmd", "srun", "salloc", "sinfo")
SECONDS_TO_START = 20
CONFIGURATION = """\
ClusterName=nearfield
SlurmctldHost={head}
SlurmUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation={files}/state
SlurmdSpoolDir={files}/spool.%n
SlurmctldPidFile={files}/slurmctld.pid
SlurmdPidFile={files}/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
KillWait=1
NodeName={nodes} CPUs=64 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Slurm:
    """Slurm's daemons on the nodes, for as long as the context lasts; at its end nothing runs on the nodes any more.

    Raises Unavailable where Slurm is not installed.
    """

    def __init__(self, nodes: Nodes) -> None:
        self.nodes, self.files = nodes, nodes.files / "slurm"
        self.environment = {"SLURM_CONF": str(self.files / "slurm.conf")}
        self._daemons: list[subprocess.Popen] = []

    def __enter__(self) -> Slurm:
        if missing := [tool for tool in TOOLS if not shutil.which(tool)]:
            raise Unavailable(f"no {', '.join(missing)} here; install slurmctld, slurmd and slurm-client")
        names = self.nodes.names
        for directory in ("state", *(f"spool.{name}" for name in names)):
            (self.files / directory).mkdir(parents=True)
        text = CONFIGURATION.format(head=HEAD, files=self.files, nodes=",".join(names))
        (self.files / "slurm.conf").write_text(text)
        try:
            self._start(HEAD, ["slurmctld", "-D"])
            for name in names:
                self._start(name, ["slurmd", "-D", "-N", name])
            self._wait_until_idle()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.nodes.kill_all()  # what daemons have started lives in sessions of its own
        for daemon in self._daemons:
            daemon.wait()
        self._daemons.clear()
        shutil.rmtree(self.files, ignore_errors=True)

    def _start(self, name: str, command: list[str]) -> None:
        with open(self.files / f"{name}.log", "w") as log:
            self._daemons.append(
                subprocess.Popen(
                    self.nodes.enter(name, command),
                    env=os.environ | self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            )

    def _wait_until_idle(self) -> None:
        end = time.monotonic() + SECONDS_TO_START
        idle = f"idle {len(self.nodes.names)}"
        command = self.nodes.enter(HEAD, ["sinfo", "-h", "-o", "%T %D"])
        env = os.environ | self.environment
        while idle not in subprocess.run(command, env=env, capture_output=True, text=True).stdout:
            if time.monotonic() > end:
                raise Unavailable(f"Slurm does not start: {(self.files / f'{HEAD}.log').read_text()[-500:]}")
            time.sleep(0.1)

    def run_command(self, placement: Sequence[int], program: Sequence[str]) -> list[str]:
        """The command line, for the head, that starts `program` with rank i on node placement[i].

        Slurm tells MPICH which ranks share a node only where all nodes have as many, in blocks; else each is alone.
        """
        sizes = Counter(placement)
        options = ["--quiet", "--mpi=pmi2", f"--ntasks={len(placement)}"]
        if list(placement) == sorted(placement) and len(set(sizes.values())) == 1:
            nodes = ",".join(self.nodes.names[node] for node in sizes)
            each = sizes[placement[0]]
            shape = [f"--nodelist={nodes}", f"--nodes={len(sizes)}", f"--ntasks-per-node={each}"]
            return ["srun", *options, "--distribution=block", *shape, *program]
        machines = self.files / f"machines{len(list(self.files.iterdir()))}"
        machines.write_text("".join(f"{self.nodes.names[node]}\n" for node in placement))
        return ["env", f"SLURM_HOSTFILE={machines}", "srun", *options, "--distribution=arbitrary", *program]

    def allocate_command(self, launcher: Sequence[str]) -> list[str]:
        """The command line, for the head, that runs a launcher in an allocation of all nodes."""
        return ["salloc", "--quiet", f"--nodes={len(self.nodes.names)}", *launcher]
