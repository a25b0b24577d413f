"""PyTorch's own tests of a backend of torch.distributed, out of its package, on ours: `pytorchs_own.py [NAME ...]`, all that need
neither GPUs nor another backend if none are named. Needs PyTorch and expecttest; WORLD_SIZE says how many ranks (3).
"""

import os
import re
import sys
import tempfile
import unittest

os.environ["BACKEND"] = "nearfield"
os.environ.setdefault("WORLD_SIZE", "3")
os.environ.setdefault("TEMP_DIR", tempfile.mkdtemp(prefix="nearfield-torch-own-"))

from torch.nn.parallel import _replicated_tensor_ddp_utils
from torch.testing._internal.common_distributed import DistTestCases

import nearfield.torch  # noqa: F401 (the backend)

# Tests switch on what PyTorch 1.13 cannot import under Python 3.11 (mutable defaults of dataclasses).
_replicated_tensor_ddp_utils._set_ddp_with_replicated_tensor = lambda _: None

for feature in ("plugin", "ddp", "subgroup"):
    DistTestCases.backend_feature[feature].add("nearfield")

from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend  # noqa: E402

# What asks for devices, for gloo or NCCL by name, or for what 1.13 has of its own backends alone.
ELSEWHERE = re.compile(
    "cuda|gpu|nccl|multigpu|debug_mode|detail|complex_unsupported|sparse|object_list_device|new_subgroups|profil|monitored"
)


class OwnTests(TestDistBackend, DistributedTest._DistTestBase):
    def setUp(self) -> None:
        super().setUp()
        self._spawn_processes()


def names() -> list[str]:
    every = unittest.TestLoader().getTestCaseNames(OwnTests)
    return [name for name in every if not ELSEWHERE.search(name)]


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print("\n".join(names()))
        sys.exit(0)
    suite = unittest.TestSuite(OwnTests(name) for name in sys.argv[1:] or names())
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
