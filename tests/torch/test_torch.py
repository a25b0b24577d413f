"""nearfield.torch in jobs of PyTorch ranks (worker.py), against gloo and by definition. They need PyTorch, which `make setup` does not
install: `make test-torch`, docs/dev/testing.md."""

import os

import pytest

from bench.pytorch import LOADS, python_with_torch, run_torch_bench
from nearfield.libraries import what_loads
from tests.torch.jobs import complaints, run_scenario

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        python_with_torch() is None, reason="no Python here has PyTorch with gloo (python3-torch)"
    ),
]


def passes(name: str, size: int, *arguments: str) -> None:
    ranks = run_scenario(name, size, *arguments)
    assert not complaints(ranks), complaints(ranks)


@pytest.mark.parametrize("size", [2, 3, 8])
def test_values_are_those_of_gloo(size: int) -> None:
    seed = int.from_bytes(os.urandom(2), "little")
    passes("against_gloo", size, str(seed), "60" if size == 8 else "200")


@pytest.mark.parametrize("size", [2, 5])
def test_scenarios(size: int) -> None:
    passes("scenarios", size)


def test_many_ranks() -> None:
    passes("inference", 12)


def test_of_one_rank() -> None:
    passes("alone", 1)


@pytest.mark.parametrize("heap", ["shared", "off"])
def test_tensors_in_the_shared_heap_are_reached_directly(heap: str) -> None:
    libraries = ("libnearfield.so", "libnearfield-heap.so")
    env = what_loads({}, libraries) if heap == "shared" else {}
    ranks = run_scenario("mapped", 2, heap, env=env | {"NEARFIELD_ALGORITHM": "allreduce:direct"})
    assert not complaints(ranks), complaints(ranks)


def test_the_benchmark_has_a_row_for_each_load() -> None:
    rows = run_torch_bench(LOADS, [2], [8, 65536], 0.1, "off")
    assert len(rows) == 2 * (len(LOADS) - 2) + 2
    assert all(row["ratio"] == row["nearfield_us"] / row["gloo_us"] for row in rows)


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("when", ["dies", "dies_inside"])
def test_a_dead_rank_is_named(when: str, size: int) -> None:
    ranks = run_scenario(when, size, timeout=60)
    others = [each for r, each in enumerate(ranks) if r != 1]
    assert all(each.status == 0 for each in others), complaints(ranks)
    assert any("rank 1 " in each.out and "has ended" in each.out for each in others), [
        each.out for each in others
    ]
    assert max(each.seconds for each in ranks) < 30


@pytest.mark.parametrize("how", ["all_reduce", "broadcast", "reduce", "all_gather_into_tensor"])
def test_lengths_that_differ_are_named(how: str) -> None:
    passes("lengths", 3, how)


def test_lists_of_another_length_are_refused() -> None:
    passes("lists", 3)


def test_pytorchs_switch_for_checks_is_ours() -> None:
    ranks = run_scenario("compares", 2, env={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"})
    assert not complaints(ranks), complaints(ranks)


@pytest.mark.parametrize("how", ["collective", "future", "monitored", "receive"])
def test_a_late_rank_is_named(how: str) -> None:
    ranks = run_scenario("late", 3, how, timeout=60)
    assert not complaints(ranks), complaints(ranks)
    said = ranks[0].out + ranks[2].out
    assert "has waited too long" in said
    if how != "receive":
        assert "missing is rank 1" in said or "missing are ranks 1" in said, said


@pytest.mark.parametrize("how", ["collective", "receive"])
def test_ctrl_c_ends_a_wait(how: str) -> None:
    ranks = run_scenario("interrupted", 2, how, timeout=60)
    assert ranks[1].status == 0 and ranks[1].out == "interrupted\n", complaints(ranks)


def test_several_nodes_are_refused_by_a_text_that_names_gloo() -> None:
    ranks = run_scenario("several_nodes", 2, prefix=("sh", "-c", 'NEARFIELD_NODE=$RANK exec "$@"', "sh"))
    assert not complaints(ranks), complaints(ranks)
    for each in ranks:
        assert "the members live on several nodes" in each.out and "use the backend gloo" in each.out
