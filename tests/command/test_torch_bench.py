"""`nearfield bench --torch`: what it says where it cannot measure. What it measures is tested where PyTorch is (tests/torch)."""

import pytest

from nearfield import torch_bench


def test_loads_that_there_are_not_are_named_with_those_that_there_are() -> None:
    with pytest.raises(
        ValueError, match="--torch has no nonsense, scan; it has allreduce, .*tensor-parallel"
    ):
        torch_bench.run_torch_bench(["nonsense", "allreduce", "scan"], [2], [8], 0.1, "off")


def test_it_says_where_pytorch_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_bench, "python_with_torch", lambda: None)
    with pytest.raises(ValueError, match="no Python here has PyTorch.*NEARFIELD_TORCH_PYTHON"):
        torch_bench.run_torch_bench(["allreduce"], [2], [8], 0.1, "off")
