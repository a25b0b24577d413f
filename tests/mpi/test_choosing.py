"""How algorithms are chosen under real hosts: by trials, by a file, by the model; and that results stay right meanwhile."""

from pathlib import Path

import pytest

from tests.mpi.jobs import hosts, launch, python_of

BOTH = hosts("mpich", "openmpi")
# Calls of a few cells, arguments changing, every result checked.
PROGRAM = """
import ctypes, sys
import numpy as np
from mpi4py import MPI
comm, calls = MPI.COMM_WORLD, int(sys.argv[1])
p, me = comm.size, comm.rank
last = ctypes.CDLL(None).nearfield_last_algorithm
last.restype = ctypes.c_char_p
used = set()
for n in (1, 500, 40000):
    send, recv = np.empty(n * p), np.empty(n * p)
    one = np.empty(n)
    for i in range(calls if n < 40000 else calls // 20):
        send[:] = np.repeat(np.arange(p), n) * 1000 + me + i
        comm.Alltoall(send, recv)
        used.add(last().decode())
        assert (recv == np.repeat(np.arange(p), n) + me * 1000 + i).all(), (n, i)
        comm.Allreduce(send[:n], one)
        assert (one == p * (p - 1) // 2 + p * i).all(), (n, i)
        if me == i % p:
            one[:] = i
        comm.Bcast(one, root=i % p)
        assert (one == i).all(), (n, i)
if me == 0:
    print("used", *sorted(used), flush=True)
"""


@pytest.mark.parametrize("heap", ["shared", "off"])
@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("host", BOTH)
def test_trials_end_and_results_stay_right(host: str, ranks: int, heap: str) -> None:
    # Rows that are named are tried against each other, however far apart the model puts them.
    rows = "alltoall:slots,rounds,pull-rotated,push-rotated;allreduce:slots,oneshot,partitioned,direct"
    env = {"NEARFIELD_LOG": "info", "NEARFIELD_HEAP": heap, "NEARFIELD_ALGORITHM": rows}
    job = launch(host, ranks, [python_of(host), "-c", PROGRAM, "2400"], env=env, timeout=120)
    assert job.returncode == 0, job.text[-3000:]
    decisions = [line for line in job.text.splitlines() if "(tried" in line]
    assert any("alltoall" in line and f"on {ranks} ranks" in line for line in decisions), job.text[-3000:]
    assert any("allreduce" in line for line in decisions), job.text[-3000:]


def test_the_model_tries_nothing() -> None:
    env = {"NEARFIELD_LOG": "info", "NEARFIELD_CHOOSE": "model"}
    job = launch("mpich", 2, [python_of("mpich"), "-c", PROGRAM, "600"], env=env)
    assert job.returncode == 0, job.text[-3000:]
    assert "(tried" not in job.text


def test_a_file_decides(tmp_path: Path) -> None:
    tuned = tmp_path / "tuned.toml"
    cells = [
        ("alltoall", 2, 8, "rounds"),
        ("alltoall", 2, 4096, "rounds"),
        ("alltoall", 2, 524288, "push-rotated"),
    ]
    tuned.write_text(
        "".join(
            f'[[cell]]\nop = "{op}"\nranks = {p}\nbytes = {n}\nalgorithm = "{name}"\n'
            for op, p, n, name in cells
        )
    )
    env = {"NEARFIELD_CHOOSE": "file", "NEARFIELD_TUNED": str(tuned)}
    job = launch("mpich", 2, [python_of("mpich"), "-c", PROGRAM, "40"], env=env)
    assert job.returncode == 0, job.text[-3000:]
    assert "used push-rotated rounds" in job.stdout, job.stdout


@pytest.mark.parametrize(
    "text, complaint",
    [
        (
            '[[cell]]\nop = "alltoall"\nranks = 2\nbytes = 8\nalgorithm = "fast"\n',
            "not an algorithm of alltoall",
        ),
        ('[[cell]]\nop = "scam"\nranks = 2\nbytes = 8\n', "not a collective"),
        ("ranks = \n", "line 1"),
        ("", "nearfield tune"),
        (None, "nearfield tune"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error(tmp_path: Path, text: str | None, complaint: str) -> None:
    tuned = tmp_path / "tuned.toml"
    if text is not None:
        tuned.write_text(text)
    env = {"NEARFIELD_CHOOSE": "file", "NEARFIELD_TUNED": str(tuned)}
    job = launch("mpich", 2, [python_of("mpich"), "-c", PROGRAM, "1"], env=env)
    assert job.returncode != 0
    assert complaint in job.text and "is not valid" in job.text, job.text[-2000:]
