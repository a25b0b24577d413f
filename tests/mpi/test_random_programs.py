"""Programs of collectives that Hypothesis writes, and shrinks when one fails, against the host's own results."""

import json
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.mpi.jobs import SCRATCH, launch, python_of
from tests.mpi.operations import ALGORITHMS, OPERATIONS

WORKER = str(Path(__file__).with_name("worker_properties.py"))
NAMES = sorted({name for names in ALGORITHMS.values() for name in names})
# Around every boundary between algorithms: a line, a slot, a chunk, a copy buffer, the shared heap.
COUNTS = st.one_of(
    st.integers(0, 40),
    st.sampled_from([511, 512, 513, 1023, 1025, 2048, 4095, 4096, 4097, 8192, 8193, 16384, 32768, 65537]),
    st.integers(0, 30000),
)
CASES = st.fixed_dictionaries(
    {
        "op": st.sampled_from(OPERATIONS),
        "comm": st.integers(0, 7),
        "dtype": st.sampled_from(["i1", "i2", "i4", "i8", "u1", "u8", "f4", "f8", "c8", "c16"]),
        "count": COUNTS,
        "root": st.integers(0, 8),
        "in_place": st.booleans(),
        "algorithm": st.one_of(st.none(), st.sampled_from(NAMES)),
        "operator": st.integers(0, 7),
    }
)


# The same programs on every run: CI must not fail for a reason that the change did not bring.
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
@given(program=st.lists(CASES, min_size=20, max_size=60), ranks=st.sampled_from([2, 2, 3, 4]))
def test_programs_equal_the_hosts(program: list[dict], ranks: int) -> None:
    SCRATCH.mkdir(exist_ok=True)
    path = SCRATCH / "program.json"
    path.write_text(json.dumps(program))
    job = launch("mpich", ranks, [python_of("mpich"), WORKER, str(path)], timeout=120)
    assert not job.timed_out, job.text[-3000:]
    assert job.returncode == 0 and f"{len(program)} cases" in job.stdout, job.text[-3000:]
