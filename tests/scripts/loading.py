"""Scripts that lie in no package, as modules."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def load(path: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script with that path from the root of the checkout on, loaded anew for one test."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # where dataclasses look for their module
    spec.loader.exec_module(module)
    return module
