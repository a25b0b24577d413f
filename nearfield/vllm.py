"""vLLM's CPU workers by the backend nearfield: a plugin of vLLM, which `VLLM_PLUGINS=nearfield` asks for (docs/user/vllm.md)."""

from __future__ import annotations

import os


def register() -> None:
    """vLLM calls this in each process, also if VLLM_PLUGINS is not set. It acts only if that names nearfield: not all users want it."""
    if "nearfield" not in os.environ.get("VLLM_PLUGINS", "").split(","):
        return
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        return
    import nearfield.torch

    platform = type(current_platform)
    platform.dist_backend = nearfield.torch.NAME
    # The tensor-parallel group would not ask its backend otherwise, but vLLM's own shared memory.
    from vllm.distributed.device_communicators.cpu_communicator import CpuCommunicator

    CpuCommunicator._all_group_ranks_share_shm_group_name = lambda _: False
