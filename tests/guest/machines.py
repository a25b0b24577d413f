"""The machines that a guest can be: NUMA nodes and what the firmware says about them (HMAT, SLIT)."""

from __future__ import annotations

from dataclasses import dataclass

CPUS = 4


@dataclass(frozen=True)
class Node:
    """A NUMA node: its size, its CPUs or the CPUs' node beside which it lies, and how fast it is from there."""

    mebibytes: int
    cpus: tuple[int, int] | None = None  # first and last; None: memory alone
    beside: int | None = None  # of memory alone: the node of the CPUs that it belongs to
    latency: int = 100  # ns
    bandwidth: int = 100  # GB/s
    cache: int = 0  # MiB of cache in front of the memory


HBM = {"latency": 120, "bandwidth": 400}
CXL = {"latency": 400, "bandwidth": 20}
# From the CPUs of another node.
FARTHER = 100  # ns more
NARROWER = 50  # GB/s at most


@dataclass(frozen=True)
class Machine:
    """The nodes, numbered as the kernel will, those with CPUs first."""

    name: str
    nodes: tuple[Node, ...]

    def options(self) -> list[str]:
        """The emulator's options."""
        with_cpus = [index for index, node in enumerate(self.nodes) if node.cpus]
        each = CPUS // len(with_cpus)
        words = ["-machine", "pc,hmat=on", "-m", f"{sum(node.mebibytes for node in self.nodes)}M"]
        words += ["-smp", f"{CPUS},sockets={len(with_cpus)},cores={each},threads=1"]
        numa = []
        for index, node in enumerate(self.nodes):
            words += ["-object", f"memory-backend-ram,id=m{index},size={node.mebibytes}M"]
            cpus = ",cpus={}-{}".format(*node.cpus) if node.cpus else ""
            numa.append(f"node,nodeid={index},memdev=m{index}{cpus},initiator={self.home(index)}")
        for index in range(len(self.nodes)):
            numa += [
                f"dist,src={index},dst={other},val={self.distance(index, other)}"
                for other in range(len(self.nodes))
            ]
        for initiator in with_cpus:
            for target in range(len(self.nodes)):
                latency, bandwidth = self.speed(initiator, target)
                memory = f"hmat-lb,initiator={initiator},target={target},hierarchy=memory"
                numa.append(f"{memory},data-type=access-latency,latency={latency}")
                numa.append(f"{memory},data-type=access-bandwidth,bandwidth={bandwidth}G")
        for index, node in enumerate(self.nodes):
            if node.cache:
                how = "level=1,associativity=direct,policy=write-back,line=64"
                numa.append(f"hmat-cache,node-id={index},size={node.cache}M,{how}")
        return words + [word for option in numa for word in ("-numa", option)]

    def home(self, index: int) -> int:
        """The node of the CPUs to which a node belongs."""
        beside = self.nodes[index].beside
        return index if beside is None else beside

    def node_of(self, cpu: int) -> int:
        """The node that a CPU belongs to."""
        having = (
            index
            for index, node in enumerate(self.nodes)
            if node.cpus and node.cpus[0] <= cpu <= node.cpus[1]
        )
        return next(having)

    def speed(self, initiator: int, target: int) -> tuple[int, int]:
        """Latency in ns and bandwidth in GB/s of a node from the CPUs of another."""
        node = self.nodes[target]
        if self.home(target) == initiator:
            return node.latency, node.bandwidth
        return node.latency + FARTHER, min(node.bandwidth, NARROWER)

    def distance(self, index: int, other: int) -> int:
        """As firmware says it: tenths of the latency of a node's own memory."""
        if index == other:
            return 10
        there, back = self.speed(self.home(index), other)[0], self.speed(self.home(other), index)[0]
        return max(11, there // 10, back // 10)


MACHINES = {
    machine.name: machine
    for machine in (
        # One socket, HBM beside DRAM as two nodes.
        Machine("flat", (Node(1536, cpus=(0, 3)), Node(1024, beside=0, **HBM))),
        # Each of two sockets with HBM of its own.
        Machine(
            "per-socket",
            (
                Node(1024, cpus=(0, 1)),
                Node(1024, cpus=(2, 3)),
                Node(512, beside=0, **HBM),
                Node(512, beside=1, **HBM),
            ),
        ),
        # A little HBM beside one of two sockets, and much, far and slow memory beside the other.
        Machine(
            "tiers",
            (
                Node(1024, cpus=(0, 1)),
                Node(1024, cpus=(2, 3)),
                Node(64, beside=0, **HBM),
                Node(2048, beside=1, **CXL),
            ),
        ),
        # HBM as a cache in front of the only memory.
        Machine("cached", (Node(2048, cpus=(0, 3), cache=512),)),
    )
}
