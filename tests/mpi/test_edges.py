"""Collectives whose blocks differ, of neighbours, and non-blocking ones, against a model and the hosts' own results."""

from pathlib import Path

import pytest

from nearfield.hosts import HOSTS
from tests.mpi.jobs import carried, hosts, launch, python_of

WORKER = str(Path(__file__).with_name("worker_edges.py"))
# By ranks: how many cases of each kind.
CASES = {
    1: "vectors=60 topologies=60 mixes=6 lifetimes=6 threads=2",
    2: "vectors=60 topologies=60 mixes=6 lifetimes=6 threads=2",
    3: "vectors=40 topologies=40 mixes=4 lifetimes=4 threads=1",
    5: "vectors=15 topologies=15 mixes=2 lifetimes=2 threads=1",
    8: "vectors=8 topologies=8 mixes=1 lifetimes=1 threads=1",
}
