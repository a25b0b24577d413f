"""Scripts of bench/, which nothing imports, go with the package as it is."""

import pytest

from tests.scripts.loading import ROOT, load

# The others run as soon as they are loaded.
SCRIPTS = sorted(path.name for path in (ROOT / "bench").glob("*.py") if "__main__" in path.read_text())


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_can_be_loaded(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(f"bench/{script}", monkeypatch).__doc__
