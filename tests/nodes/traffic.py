"""What has crossed the interface of a node, by the kernel's counters."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path


@dataclass(frozen=True)
class Traffic:
    """What has crossed the interface of a node.

    A packet is what TCP hands to the interface, up to 64 KiB; `segments` are those of TCP with data, of at most the network's
    packet size and without acknowledgements, to all addresses, the node's own included.
    """

    sent_packets: int
    sent_bytes: int
    received_packets: int
    received_bytes: int
    segments: int

    def __sub__(self, before: Traffic) -> Traffic:
        return Traffic(*(getattr(self, f.name) - getattr(before, f.name) for f in fields(self)))


def traffic_of(process: int | str = "self") -> Traffic:
    """What has crossed the interface of the node that a process lives on."""
    lines = Path(f"/proc/{process}/net/dev").read_text().splitlines()
    counts = next(line.split(":")[1].split() for line in lines if line.strip().startswith("eth0:"))
    extended = [
        line.split()
        for line in Path(f"/proc/{process}/net/netstat").read_text().splitlines()
        if line.startswith("TcpExt:")
    ]
    segments = dict(zip(*extended, strict=False))["TCPOrigDataSent"]
    return Traffic(*(int(n) for n in (counts[9], counts[8], counts[1], counts[0], segments)))
