"""scripts/arrows.py: which includes, imports and namespaces it refuses."""

from pathlib import Path
from types import ModuleType

import pytest

from tests.scripts.loading import load

DRAWING = """# Architecture

## Layers

```
   program
      |
   tools                   programs
   mpi/shim                handles
   engine/team, fibers     who is in it
   heap      lib.so        preloaded
   engine/base             log
```

## Globals

`heap::pages`.
"""
TREE = {
    "docs/dev/architecture.md": DRAWING,
    "tools/tool.cpp": '#include "engine/team/team.hpp"\n',
    "mpi/shim/handles/types.hpp": '#include "mpi/shim/shim.hpp"\n#include "engine/base/log.hpp"\n',
    "mpi/shim/shim.hpp": '#include "mpi/shim/handles/types.hpp"\n',
    "engine/team/team.hpp": '#include <vector>\n#include "engine/fibers/fiber.hpp"\nnamespace nearfield::team {\nclass Team {};\n}\n',
    "engine/fibers/fiber.hpp": "namespace nearfield::team {\nclass Team;\n}\nnamespace nearfield::fibers {\nclass Fiber {};\n}\n",
    "heap/heap.cpp": '#include "engine/base/log.hpp"\nnamespace heap {\nint pages = 0;\nconst int most = 1;\n}\n',
    "engine/base/log.hpp": "namespace nearfield {\nvoid log();\n}\n",
    "nearfield/cli.py": "from nearfield import page\n\n\ndef main():\n    from nearfield.show import show\n",
    "nearfield/page.py": "import html\n",
    "nearfield/show.py": "import nearfield.page\n",
}


@pytest.fixture
def arrows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, for a small tree in good order."""
    module = load("scripts/arrows.py", monkeypatch)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    for name, text in TREE.items():
        write(module, name, text)
    write(module, module.PICTURE, "")
    assert module.main(["--svg"]) == 0
    return module


def write(arrows: ModuleType, name: str, text: str) -> None:
    path = arrows.ROOT / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def refused(arrows: ModuleType, capsys: pytest.CaptureFixture[str], name: str, text: str) -> str:
    """What is said of the tree with one more file."""
    write(arrows, name, text)
    assert arrows.main([]) == 1
    return capsys.readouterr().err


def test_arrows_down_pass(arrows: ModuleType) -> None:
    assert arrows.main([]) == 0


def test_the_picture_has_the_arrows(arrows: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """But for those that follow from others."""
    drawn = (arrows.ROOT / arrows.PICTURE).read_text()
    assert "tools includes engine/team" in drawn and "engine/team includes engine/fibers" in drawn
    write(arrows, "tools/x.cpp", '#include "engine/fibers/fiber.hpp"\n')
    assert arrows.main([]) == 0
    assert "is not what folders include" in refused(
        arrows, capsys, "mpi/shim/x.hpp", '#include "engine/team/team.hpp"\n'
    )


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("engine/base/x.cpp", '#include "engine/team/team.hpp"', "engine/base includes engine/team"),
        ("engine/base/x.cpp", '  #  include "heap/heap.cpp"  // why', "engine/base includes heap"),
        ("engine/fibers/x.hpp", '#include "engine/team/team.hpp"', "engine/fibers includes engine/team"),
        ("engine/base/x.hpp", '#include "docs/dev/architecture.md"', "engine/base includes docs"),
        (
            "engine/new/x.hpp",
            "namespace nearfield::new_one {}",
            "engine/new: docs/dev/architecture.md does not draw it",
        ),
        (
            "docs/dev/architecture.md",
            DRAWING.replace("programs", "programs\n   bench    more"),
            "draws bench",
        ),
    ],
    ids=["folder", "spaces", "same row", "elsewhere", "not drawn", "not there"],
)
def test_arrows_up_fail(
    arrows: ModuleType, capsys: pytest.CaptureFixture[str], name: str, text: str, told: str
) -> None:
    assert told in refused(arrows, capsys, name, text + "\n")


def test_cycles_of_modules_fail(arrows: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    told = refused(arrows, capsys, "nearfield/page.py", "def late():\n    from nearfield.show import show\n")
    assert told == "nearfield/page.py imports show; nearfield/show.py imports page\n"


@pytest.mark.parametrize(
    "text",
    [
        "namespace nearfield::team {\nclass Fiber {};\n}\n",
        "namespace nearfield {\nnamespace {\nint number;\n}\n}\n",
        'namespace nearfield::fibers {\nconst char* brace = "{";\n}  // {\nnamespace nearfield {\nvoid run();\n}\n',
    ],
    ids=["type", "unnamed", "behind its own"],
)
def test_foreign_namespaces_fail(arrows: ModuleType, capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert "not in nearfield::fibers" in refused(arrows, capsys, "engine/fibers/x.hpp", text)


def test_types_of_one_name_fail(arrows: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    text = "namespace nearfield::team {\nstruct alignas(64) Fiber final : Base {\n  struct Team {};\n};\nenum class Log : int {};\n}\n"
    write(arrows, "mpi/shim/x.cpp", "namespace nearfield::mpi {\nclass Fiber;\nstruct Fiber::Part {};\n}\n")
    places = "engine/fibers/fiber.hpp:5 nearfield::fibers, engine/team/x.hpp:2 nearfield::team"
    assert f"Fiber names 2 types: {places}" in refused(arrows, capsys, "engine/team/x.hpp", text)


@pytest.mark.parametrize(
    "text", ["int count;", "static std::atomic<int> count{0};", "namespace {\nThing* count = nullptr;\n}"]
)
def test_globals_that_the_page_does_not_name_fail(
    arrows: ModuleType, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    told = refused(arrows, capsys, "engine/team/x.cpp", f"namespace nearfield::team {{\n{text}\n}}\n")
    assert "count is a global variable" in told
