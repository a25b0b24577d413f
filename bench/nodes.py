"""Operations over pretended nodes (docs/dev/testing.md), plain and under Nearfield, and what crosses between them.

    python bench/nodes.py --nodes 2 --delay 20 --ranks 8 --op allreduce,alltoall --sizes 8,64K

takes the options of `nearfield bench`. For the collectives of COUNTED (bench/internode_traffic.py) it also counts packets and bytes
between nodes; with --seconds 0 it does only that.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import internode_traffic  # noqa: E402
from nearfield.bench import save  # noqa: E402
from nearfield.cli import Parser  # noqa: E402
from nearfield.commands import bench  # noqa: E402
from nearfield.hosts import Host  # noqa: E402
from nearfield.libraries import NotBuilt  # noqa: E402
from nearfield.summary import show_summary  # noqa: E402
from nearfield.values import at_least, parse_sizes  # noqa: E402
from tests.nodes.bed import Nodes, Unavailable  # noqa: E402
from tests.nodes.jobs import Ended, even_blocks, run_job  # noqa: E402


class Bed:
    """Nodes as nearfield.bench.Bed: ranks in blocks."""

    def __init__(self, beds: Nodes) -> None:
        self.beds, self.nodes = beds, len(beds.names)

    def run(self, host: Host, ranks: int, program: list[str], env: dict[str, str], limit: float) -> Ended:
        """A job to its end."""
        return run_job(self.beds, host, even_blocks(ranks, self.nodes), program, env, limit)


@contextlib.contextmanager
def over_nodes(count: int, delay: float = 0, rate: float = 0, own_cpus: bool = False) -> Iterator[Bed | None]:
    """Nodes, or None for one, this machine as it is. Raises ValueError where they cannot be made."""
    with contextlib.ExitStack() as stack:
        try:
            made = stack.enter_context(Nodes(count, delay, rate, own_cpus)) if count > 1 else None
        except Unavailable as why:
            raise ValueError(f"{count} nodes cannot be made here: {why}") from None
        yield Bed(made) if made else None


def main() -> None:
    """Measures, shows and writes what the command line asks for."""
    parser = Parser(description=__doc__, prog="bench/nodes.py", usage="bench/nodes.py [OPTIONS]")
    bench.options(parser)
    add = parser.add_argument
    add("--nodes", type=at_least(2), default=2)
    add("--delay", type=at_least(0.0), default=0.0, help="microseconds to another node")
    add("--rate", type=at_least(0.0), default=0.0, help="bits per second of a node")
    add("--shared-cpus", action="store_true", help="each node has all CPUs, not its part of them")
    asked = parser.parse_args()
    rows, failures = [], []
    try:
        with over_nodes(asked.nodes, asked.delay, asked.rate, not asked.shared_cpus) as bed:
            if asked.seconds:
                rows, failures = bench.measure(asked, bed)
            sizes = parse_sizes(asked.sizes, asked.quick)
            crossed = internode_traffic.count(
                bed.beds, asked.op.split(","), asked.ranks, sizes, asked.hosts, asked.algorithm, asked.heap[0]
            )
    except (NotBuilt, ValueError) as error:
        parser.error(str(error))
    show_summary(rows)
    internode_traffic.show(crossed)
    save(rows + crossed, asked.json, None, None)
    save(rows, None, asked.report, asked.svg)
    if failures:
        parser.error("\n".join([f"{len(failures)} jobs failed", *failures]))


if __name__ == "__main__":
    main()
