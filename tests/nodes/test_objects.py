"""nearfield.mpi4py between ranks of several nodes."""

import pytest

from tests.mpi.jobs import hosts
from tests.nodes.bed import Nodes
from tests.nodes.beds import made_or_skip
from tests.nodes.feeding import Fed
from tests.nodes.jobs import blocks


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_objects_cross_nodes(host: str) -> None:
    with made_or_skip(Nodes(2, own_cpus=True)) as nodes:
        job = Fed(nodes, host, blocks(2, 1), {})
        for case in ("collectives", "messages"):
            job.run(f"oracle.objects:{case}", left="anything", timeout=120)
        job.end()
