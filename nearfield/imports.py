"""`nearfield check python app.py`: which MPI a script's imports bring, found out by importing them, not by running the script."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from pathlib import Path

from nearfield.elf import NoProgram

INTERPRETER = re.compile(r"(python|pypy)[\d.]*")
SECONDS = 60
# Run by the script's interpreter, which may be an old one: imports modules; says what failed, and which files it has mapped then.
IMPORT = """
import importlib, json, sys
directory, names = sys.argv[1], sys.argv[2:]
sys.path.insert(0, directory)
failed = {}
for name in names:
    try:
        importlib.import_module(name)
    except BaseException as error:
        failed[name] = "%s: %s" % (type(error).__name__, error)
with open("/proc/self/maps") as maps:
    files = sorted(set(line.split(None, 5)[5].strip() for line in maps if ".so" in line))
print("\\n" + json.dumps([failed, files]))
"""


def is_interpreter(word: str) -> bool:
    """Whether a word of a command line is Python's interpreter."""
    return bool(INTERPRETER.fullmatch(Path(word).name))


def imports_of(script: Path) -> list[str]:
    """The modules that a script imports anywhere, in their order. `from a import b` also gives a.b, since b may be a module.

    Raises NoProgram if the script cannot be read or is not Python of this version.
    """
    try:
        tree = ast.parse(script.read_bytes(), str(script))
    except OSError as error:
        raise NoProgram(f"it cannot be read: {error.strerror}") from None
    except (SyntaxError, ValueError) as error:
        raise NoProgram(f"it is not valid Python: {error}") from None
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [one.name for one in node.names]
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{one.name}" for one in node.names if one.name != "*")]
    return list(dict.fromkeys(names))


def mapped_by(interpreter: str, script: Path, env: dict[str, str]) -> list[Path]:
    """Libraries that an interpreter has mapped when it has imported what the script imports. Raises NoProgram.

    Side effects of the imports happen, except that mpi4py is told not to initialize MPI.
    """
    names = imports_of(script)
    words = [interpreter, "-c", IMPORT, str(script.resolve().parent), *names]
    try:
        done = subprocess.run(
            words,
            env=env | {"MPI4PY_RC_INITIALIZE": "0", "NEARFIELD_LOG": "off"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        failed, files = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        raise NoProgram(f"its imports take longer than {SECONDS} s") from None
    except (IndexError, ValueError):
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise NoProgram(f"{interpreter} fails in its imports: {last}") from None
    # `from a import b`: where b is no module, a has it.
    wrong = [f"{name}: {why}" for name, why in failed.items() if name.rpartition(".")[0] not in names]
    if wrong:
        raise NoProgram(f"it cannot import {'; '.join(wrong)}")
    return [Path(file) for file in files]
