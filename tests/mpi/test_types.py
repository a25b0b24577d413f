"""Every predefined type with every operator, and wrong arguments, as on the plain host.

Debian's MPICH 4.0.2 is left out: it aborts itself on some types that logical operators are not defined on. The MPICH of
PyPI checks few arguments (it aborts on a negative count), so Debian's stands for it in the second test.
"""

import re
from pathlib import Path

import pytest

from tests.mpi.jobs import carried, compile_c, hosts, launch


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "debian-openmpi"))
def test_every_type_with_every_operator(host: str, ranks: int) -> None:
    job = launch(host, ranks, [compile_c(host, "types.c")], env={"NEARFIELD_STATS": "1"})
    found = re.search(r"(\d+) comparisons, 0 wrong", job.stdout)
    assert found and int(found[1]) > 1000, job.text[-4000:]
    assert carried(job, "allreduce") > 200


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("host", hosts("debian-mpich", "openmpi"))
def test_wrong_arguments_give_the_hosts_errors(host: str, ranks: int) -> None:
    program = [compile_c(host, "errors.c")]
    plain = launch(host, ranks, program, nearfield=False)
    ours = launch(host, ranks, program, timeout=20)
    assert "works afterwards" in plain.stdout, plain.text
    assert ours.stdout == plain.stdout


@pytest.mark.parametrize("heap", ["shared", "off"])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "debian-mpich", "debian-openmpi"))
def test_derived_types_and_files(host: str, heap: str, tmp_path: Path) -> None:
    program = [compile_c(host, "derived.c"), str(tmp_path / "file")]
    for ranks in (2, 3):
        env = {"NEARFIELD_STATS": "1", "NEARFIELD_HEAP": heap}
        job = launch(host, ranks, program, env=env, timeout=60)
        assert "32 kinds of calls, 0 bytes wrong" in job.stdout, job.text[-4000:]
        assert carried(job, "alltoall") >= 64


@pytest.mark.parametrize("heap", ["shared", "off"])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_nested_types_of_all_constructors(host: str, heap: str) -> None:
    program = [compile_c(host, "nested.c"), "1", "400"]
    job = launch(host, 2, program, env={"NEARFIELD_STATS": "1", "NEARFIELD_HEAP": heap})
    results = re.findall(r"rank \d: (\d+) types, (\d+) received, 0 wrong", job.stdout)
    assert len(results) == 2 and all(int(t) > 300 and int(r) > 150 for t, r in results), job.text[-4000:]
    assert carried(job, "allgather") > 300 and carried(job, "bcast") > 150
