"""Several nodes on one machine: a network namespace each, with a host name of its own, joined by a bridge.

    head (where launchers run)   node0      node1    ...
      bridge 10.77.0.254         eth0       eth0          10.77.0.1, 10.77.0.2, ...
        port0, port1, ... -------- veth pairs

A job on them (jobs.py):

    host = find_hosts()["mpich"]
    with Nodes(2, delay=50, rate=1e9) as nodes:  # microseconds, bits per second; neither: as fast as the machine
        before = nodes.traffic(0)
        environment = launcher_environment(host, nearfield=True)
        ended = run_job(nodes, host, blocks(4, 4), ["./program"], environment, timeout=60)
        print(ended.returncode, ended.out[7], ended.err[0], nodes.traffic(0) - before)

A placement is a list with the node of each rank: blocks(2, 1), round_robin(2, 3), or any other. Launchers are the hosts'
own; with Slurm(nodes) (slurm.py) srun starts MPICH, and mpiexec in an allocation starts MPICH and Open MPI.

Processes of all nodes have numbers of one machine, so the memory of another node can be reached; shared_memory() says what
processes of several nodes have mapped, and Nodes(apart=True) hides the processes of other nodes.

Slow networks are the kernel's (tc netem, not tested so far) or, where it has none, those of nearfield-wire
(tools/wire.cpp), which then is the bridge: it keeps the rate and adds 25 to 30 us to the delay.

The namespaces belong to processes that wait for the end of this one (`cat` at a pipe), and with the last process in it a
namespace goes, its interfaces too: nothing is left behind, however this process ends, and beds of several processes never
meet. The kernel counts what crosses an interface (traffic.py): evidence of how much an operation sends. Acknowledgements
are packets too, so tests take the least of a few runs.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from nearfield.libraries import NotBuilt, program
from tests.nodes.traffic import Traffic, traffic_of

NETWORK = "10.77.0"
HEAD = "head"
FILES = "nearfield-nodes-"  # then the process that made them
_beds = itertools.count()
TOOLS = ("unshare", "nsenter", "setpriv", "taskset", "ip", "bridge", "tc", "mount")

# Becomes a node: $1 its name, $2 a directory with the hosts file, $3 whether it keeps processes for itself. Hosts take it
# for granted that names in /dev/shm are those of a node. Of /sys it replaces the interfaces only: libraries ask there which there are.
BECOME = """
hostname "$1" && mount --bind "$2/hosts" /etc/hosts &&
mkdir "$2/sys.$1" && mount -t sysfs none "$2/sys.$1" &&
mount --bind "$2/sys.$1/class/net" /sys/class/net &&
mount --bind "$2/sys.$1/devices/virtual/net" /sys/devices/virtual/net &&
umount "$2/sys.$1" && rmdir "$2/sys.$1" && ip link set lo up &&
mount -t tmpfs none /dev/shm && if [ "$3" = apart ]; then mount -t proc none /proc; fi &&
echo ready && exec cat
"""


class Unavailable(Exception):
    """Nodes cannot be made here; the text says why."""


class Nodes:
    """`count` nodes, for as long as the context lasts; `names` are their host names.

    delay: microseconds that a packet takes from one node to another on top of what the machine needs.
    rate: bits per second that a node can send, and receive.
    own_cpus: each node has its part of the CPUs, one at least; else every node has all of them.
    apart: processes cannot see those of other nodes, as on real ones; else they can, and could reach their memory.

    Raises Unavailable.
    """

    def __init__(
        self,
        count: int = 2,
        delay: float = 0,
        rate: float = 0,
        own_cpus: bool = False,
        apart: bool = False,
    ) -> None:
        # Some launchers keep files by host name and process, and processes have the same numbers on nodes apart.
        bed = f"{os.getpid()}x{next(_beds)}"
        self.names = tuple(f"node{i}-{bed}" for i in range(count))
        self.delay, self.rate, self.own_cpus, self.apart = delay, rate, own_cpus, apart
        self._keepers: dict[str, subprocess.Popen] = {}
        self._wire: subprocess.Popen | None = None

    def __enter__(self) -> Nodes:
        if os.geteuid() != 0:
            raise Unavailable("only root can make network namespaces")
        if missing := [tool for tool in TOOLS if not shutil.which(tool)]:
            raise Unavailable(f"no {', '.join(missing)} here; install iproute2 and util-linux")
        _remove_abandoned()
        self._files = Path(tempfile.mkdtemp(prefix=f"{FILES}{os.getpid()}-"))
        try:
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill_all()
        if self._wire:
            self._wire.communicate()
        for keeper in self._keepers.values():
            keeper.stdin.close()
            keeper.wait()
        shutil.rmtree(self._files, ignore_errors=True)

    @property
    def agent(self) -> str:
        """The program that launchers call instead of ssh."""
        return str(self._files / "agent")

    @property
    def files(self) -> Path:
        """A directory that lasts as long as the nodes."""
        return self._files

    def _build(self) -> None:
        addresses = {name: f"{NETWORK}.{i + 1}" for i, name in enumerate(self.names)} | {
            HEAD: f"{NETWORK}.254"
        }
        hosts = "".join(f"{address} {name}\n" for name, address in addresses.items())
        (self._files / "hosts").write_text("127.0.0.1 localhost\n" + hosts)
        shutil.copy(Path(__file__).with_name("agent.sh"), self.agent)
        os.chmod(self.agent, 0o700)
        for name in addresses:
            self._start(name)
        if (self.delay or self.rate) and not self._has_netem():
            self._join_by_wire()
        else:
            self._join_by_bridge()
        for name, address in addresses.items():
            device = "bridge" if name == HEAD and not self._wire else "eth0"
            self.run_on(name, f"ip addr add {address}/24 dev {device}")
            self.run_on(name, f"ip link set {device} up")

    def _has_netem(self) -> bool:
        try:
            self.run_on(HEAD, "tc qdisc add dev lo root netem delay 0")
        except Unavailable:
            return False
        self.run_on(HEAD, "tc qdisc del dev lo root")
        return True

    def _join_by_bridge(self) -> None:
        self.run_on(HEAD, "ip link add bridge type bridge forward_delay 0 mcast_snooping 0")
        for i, name in enumerate(self.names):
            peer = self.process_of(name)
            self.run_on(HEAD, f"ip link add port{i} type veth peer name eth0 netns {peer}")
            self.run_on(HEAD, f"ip link set port{i} master bridge up")
            rate = f" rate {self.rate:.0f}bit" if self.rate else ""
            if self.delay or self.rate:
                slow = f"netem delay {self.delay}us{rate} limit 4096"
                self.run_on(name, f"tc qdisc add dev eth0 root {slow}")
            if self.rate:
                self.run_on(HEAD, f"tc qdisc add dev port{i} root netem{rate} limit 4096")

    def _join_by_wire(self) -> None:
        try:
            wire = str(program("nearfield-wire"))
        except NotBuilt as error:
            raise Unavailable(f"the kernel has no netem to slow the network with, and {error}") from None
        ports = [*self.names, HEAD]
        self._wire = subprocess.Popen(
            self._enter_network(HEAD, [wire, str(len(ports)), str(round(self.delay * 1000)), str(self.rate)]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if self._wire.stdout.readline() != "ready\n":
            raise Unavailable(f"cannot slow the network: {self._wire.communicate()[1].strip()}")
        for i, name in enumerate(ports):
            self.run_on(HEAD, f"ip link set port{i} address 02:00:00:00:00:{i:02x} txqueuelen 4096")
            self.run_on(HEAD, f"ip link set port{i} netns {self.process_of(name)} name eth0")

    def _start(self, name: str) -> None:
        kinds = ["--net", "--uts", "--mount", "--ipc"]
        apart = self.apart and name != HEAD  # launchers have to find the nodes
        if apart:
            kinds += ["--pid", "--fork", "--kill-child"]
        command = ["unshare", *kinds, "sh", "-c", BECOME, "sh", name, str(self._files)]
        keeper = subprocess.Popen(
            [*command, "apart" if apart else "together"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._keepers[name] = keeper
        if keeper.stdout.readline() != "ready\n":
            keeper.stdin.close()
            raise Unavailable(f"cannot make a namespace: {keeper.stderr.read().strip()}")
        process = keeper.pid
        if apart:
            process = int(Path(f"/proc/{process}/task/{process}/children").read_text())
        spaces = ["--net", "--uts", "--mount", "--ipc", *(["--pid"] if apart else [])]
        (self._files / name).write_text(
            " ".join(["--target", str(process), *spaces, "\n"]) + self._cpus(name)
        )

    def _cpus(self, name: str) -> str:
        cpus = sorted(os.sched_getaffinity(0))
        if self.own_cpus and name != HEAD:
            number, count = self.names.index(name), len(self.names)
            cpus = cpus[number::count] or [cpus[number % len(cpus)]]
        return ",".join(map(str, cpus))

    def process_of(self, name: str) -> int:
        """The process whose namespaces the named node is."""
        return int((self._files / name).read_text().split()[1])

    def enter(self, name: str, command: list[str]) -> list[str]:
        """The command line that runs `command` on the named node; it dies with this process."""
        spaces, cpus = (self._files / name).read_text().split("\n")
        return self._enter(spaces.split(), ["taskset", "-c", cpus, *command])

    def _enter(self, spaces: list[str], command: list[str]) -> list[str]:
        return ["setpriv", "--pdeathsig", "KILL", "nsenter", *spaces, f"--wd={os.getcwd()}", *command]

    def _enter_network(self, name: str, command: list[str]) -> list[str]:
        return self._enter(["--target", str(self.process_of(name)), "--net"], command)

    def run_on(self, name: str, command: str) -> None:
        """Runs a command that sets something up on a node. Raises Unavailable where it fails."""
        words = self._enter_network(name, command.split())
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            raise Unavailable(f"{command}: {(done.stderr or done.stdout).strip()}")

    def traffic(self, node: int) -> Traffic:
        """What has crossed the interface of a node since it was made."""
        return traffic_of(self.process_of(self.names[node]))

    def kill(self, node: int) -> None:
        """Kills all processes on a node, as a crash does; those that start there later live."""
        self._kill_on(self.names[node])

    def kill_all(self) -> None:
        """Kills all processes on all nodes, and the launchers."""
        for name in self._keepers:
            self._kill_on(name)

    def processes(self, node: int) -> list[int]:
        """The processes that live on a node."""
        return self._inhabitants(self.names[node])

    def shared_memory(self) -> set[str]:
        """What processes of several nodes have mapped to write to, by name and number: nothing, where nodes are nodes."""
        mapped = [set().union(*map(_writable_files, self.processes(i))) for i in range(len(self.names))]
        return {file for i, here in enumerate(mapped) for there in mapped[:i] for file in here & there}

    def _inhabitants(self, name: str) -> list[int]:
        keeper = self.process_of(name)
        found = []
        with contextlib.suppress(FileNotFoundError):
            home = os.stat(f"/proc/{keeper}/ns/net").st_ino
            for entry in os.scandir("/proc"):
                with contextlib.suppress(OSError):
                    if entry.name.isdigit() and os.stat(f"/proc/{entry.name}/ns/net").st_ino == home:
                        found.append(int(entry.name))
        ours = (keeper, self._keepers[name].pid, self._wire.pid if self._wire else None)
        return [pid for pid in found if pid not in ours]

    def _kill_on(self, name: str) -> None:
        if not (self._files / name).exists():
            return
        end = time.monotonic() + 10
        while (alive := self._inhabitants(name)) and time.monotonic() < end:
            for pid in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)

    @contextlib.contextmanager
    def stalled(self) -> Iterator[None]:
        """The network loses everything meanwhile."""
        self._forward(False)
        try:
            yield
        finally:
            self._forward(True)

    def _forward(self, on: bool) -> None:
        if self._wire:
            self._wire.stdin.write("o" if on else "x")
            self._wire.stdin.flush()
            return
        for i in range(len(self.names)):
            self.run_on(HEAD, f"bridge link set dev port{i} state {3 if on else 0}")


def _writable_files(process: int) -> set[str]:
    """The files, memory files among them, that a process has mapped shared and writable.

    Not System V's memory: each node numbers its own.
    """
    found = set()
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/maps").read_text().splitlines():
            _, rights, _, device, inode, *name = line.split(maxsplit=5)
            file = name[0] if name else ""
            if "w" in rights and "s" in rights and inode != "0" and not file.startswith("/SYSV"):
                found.add(f"{file} ({device} {inode})")
    return found


def _remove_abandoned() -> None:
    """Removes the files of processes that were killed."""
    for files in Path(tempfile.gettempdir()).glob(f"{FILES}*"):
        maker = files.name.removeprefix(FILES).split("-")[0]
        if not Path(f"/proc/{maker}").exists():
            shutil.rmtree(files, ignore_errors=True)
