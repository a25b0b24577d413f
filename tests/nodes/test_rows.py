"""The rows over nodes that hints and settings may name are those of the engine's table."""

import json
import subprocess

import pytest

from tests.mpi.jobs import environment, python_of
from tests.mpi.operations import ALGORITHMS
from tests.nodes.beds import MAIN, OPERATIONS, ROWS, table

ASK = """
import json, sys
from mpi4py import MPI
found = {}
for op in sys.argv[1].split(","):
    found[op] = []
    for row in sys.argv[2].split(","):
        try:
            MPI.COMM_WORLD.Set_info(MPI.Info.Create({"nearfield_algorithm": f"{op}:{row}"}))
            found[op].append(row)
        except MPI.Exception as error:
            if error.Get_error_class() != MPI.ERR_OTHER:
                raise
print(json.dumps(found))
"""
NAMES = (*ROWS, "in-order", "leaders-2", "ladder")


@pytest.mark.parametrize("host", MAIN)
def test_hints_name_rows_of_the_table(host: str) -> None:
    command = [python_of(host), "-c", ASK, ",".join(OPERATIONS), ",".join(NAMES)]
    asked = subprocess.run(command, env=environment(host, True), capture_output=True, text=True, timeout=60)
    assert asked.returncode == 0, asked.stderr
    there = {op: [name for name in NAMES if name in table()[op] + ALGORITHMS[op]] for op in OPERATIONS}
    assert json.loads(asked.stdout.splitlines()[-1]) == there
    for op in OPERATIONS:
        for name in set(NAMES) - set(there[op]):
            assert f'"{name}" is not an algorithm of {op}' in asked.stderr
    # What tests over nodes force.
    assert all({"leader", "host"} <= set(table()[op]) for op in OPERATIONS)
    assert all("lanes" in table()[op] for op in OPERATIONS if op != "barrier")
    assert all("pipelined" in table()[op] for op in ("bcast", "reduce", "allreduce"))
