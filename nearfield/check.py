"""`nearfield check`: tells whether Nearfield would serve programs, before they run.

The program's own loader lists the libraries that it would map with Nearfield preloaded. Then a process with Nearfield
preloaded opens the MPI among these libraries, and Nearfield tells whether it knows that MPI.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from nearfield.elf import NoProgram, Object, ask_loader, privileged, read_object, through_scripts
from nearfield.elf import find_program as find
from nearfield.imports import is_interpreter, mapped_by
from nearfield.libraries import NAMES, library_directory, paths_to_preload, with_nearfield

# Run with Nearfield and a library: what serves it, and what it is.
PROBE = """
import ctypes, json, sys
mpi = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
variant = ctypes.CDLL(None).nearfield_variant
variant.restype = ctypes.c_char_p
text, length, served = ctypes.create_string_buffer(8193), ctypes.c_int(), variant()
if hasattr(mpi, "MPI_Get_library_version"):
    mpi.MPI_Get_library_version(text, ctypes.byref(length))
print(json.dumps([served and served.decode(), text.value.decode(errors="replace")]))
"""
# What starts programs and is none of MPI itself.
LAUNCHERS = frozenset(
    ("mpiexec", "mpiexec.hydra", "mpiexec.mpich", "mpiexec.openmpi", "mpirun", "orterun", "prterun", "prun")
    + ("srun", "salloc", "env", "sh", "dash", "bash", "time", "timeout", "nice", "taskset", "numactl")
)
# What a command or a script gives the loader; a comment's does not count.
SETS_PRELOADS = re.compile(r"""^[^#\n]*\bLD_PRELOAD=["']?([^\s"';]*)""", re.MULTILINE)


@dataclass(frozen=True)
class Verdict:
    """Whether a program would be served, and why."""

    program: str
    served: bool  # also true if only a run can tell
    why: str

    def __str__(self) -> str:
        return f"{self.program}: {self.why if self.served else f'not served: {self.why}'}"


def check(name: str, env: dict[str, str]) -> Verdict:
    """Judges a program that would be started with `env` by `nearfield run`. Raises NotBuilt, ValueError."""
    try:
        chain = through_scripts(find(name))
        title = " by ".join([name, *map(str, chain[1:])])
    except NoProgram as error:
        return Verdict(name, False, str(error))
    try:
        return Verdict(title, True, _judge(chain, with_nearfield(env)))
    except NoProgram as error:
        return Verdict(title, False, str(error))


def check_script(interpreter: str, script: str, env: dict[str, str]) -> Verdict:
    """Judges a script of Python, started by that interpreter, by what it imports. Raises NotBuilt, ValueError."""
    title = f"{interpreter} {script}"
    started = check(interpreter, env)  # as any program
    if not started.served:
        return Verdict(title, False, started.why)
    try:
        env = with_nearfield(env)
        objects = [read_object(file) for file in mapped_by(interpreter, Path(script), env) if file.exists()]
        mpi = _mpi_of([one for one in objects if one.path.parent.resolve() != library_directory().resolve()])
        if not mpi:
            raise NoProgram("nothing that it imports loads an MPI")
        return Verdict(title, True, _ask_nearfield(mpi.path, env))
    except NoProgram as error:
        return Verdict(title, False, str(error))


def _judge(chain: list[Path], env: dict[str, str]) -> str:
    """Returns a text on how the program would be served. Raises NoProgram with the reason if it would not."""
    if env.get("NEARFIELD", "on") in ("off", "0"):
        raise NoProgram("NEARFIELD=off")
    program, ours = read_object(chain[-1]), read_object(library_directory() / "libnearfield.so")
    if not program.runs_beside(ours):
        raise NoProgram(
            f"it is built for {program.machine} of {program.bits} bits, Nearfield for {ours.machine} of {ours.bits}"
        )
    if not program.loader:
        raise NoProgram("it is linked statically, so nothing can be preloaded; link it dynamically")
    if privilege := privileged(program.path):
        raise NoProgram(f"it is {privilege}, so that the loader ignores LD_PRELOAD")
    if "ld-musl" in program.loader:
        raise NoProgram("its C library is musl, and Nearfield needs glibc")
    files, complaints = ask_loader(program, env)
    others = [file for file in files if file.parent.resolve() != library_directory().resolve()]
    fatal = [line for line in complaints if not line.endswith("ignored.")]
    if fatal or len(others) == len(files):
        raise NoProgram("; ".join(fatal or complaints) or "its loader does not load libnearfield.so")
    if program.has_mpi_inside:
        raise NoProgram("an MPI is linked into it statically; link it with the shared library")
    objects = [program, *(read_object(file) for file in others)]
    if mpi := _mpi_of(objects):
        return _ask_nearfield(mpi.path, env)
    # The C library has dlopen and does not want it.
    opens = [one for one in objects if "dlopen" in one.wanted and "dlopen" not in one.defined]
    if len(chain) == 1 and not opens:
        raise NoProgram("it is linked with no MPI, and opens no libraries while it runs")
    return "perhaps: it is linked with no MPI; Nearfield serves it if it opens an MPI while it runs, as Python does, or starts a program with MPI"


def _mpi_of(objects: list[Object]) -> Object | None:
    """Finds the MPI as libnearfield.so does: the object that defines PMPI_Init, else MPI_Init (profiling tools define that, too)."""
    for name in ("PMPI_Init", "MPI_Init"):
        for one in objects:
            if name in one.defined:
                return one
    return None


def _ask_nearfield(mpi: Path, env: dict[str, str]) -> str:
    """Returns a text: the MPI that a library is, and the shim that serves it. Raises NoProgram if no shim does."""
    with tempfile.NamedTemporaryFile("r", errors="replace") as word:
        env = env | {"NEARFIELD_OUTCOME": word.name, "NEARFIELD_LOG": "off"}
        (env["LD_PRELOAD"],) = paths_to_preload(NAMES[:1])
        try:
            told = subprocess.run(
                [sys.executable, "-c", PROBE, str(mpi)], env=env, capture_output=True, text=True, timeout=60
            )
        except subprocess.TimeoutExpired:
            raise NoProgram(f"its MPI {mpi} does not tell its version") from None
        reasons = [line.removeprefix("host ") for line in word.read().splitlines()]  # engine/base/outcome.hpp
    if told.returncode:
        last = (told.stderr.strip().splitlines() or [f"exit status {told.returncode}"])[-1]
        raise NoProgram(f"its MPI {mpi} cannot be opened: {last}")
    variant, version = json.loads(told.stdout.splitlines()[-1])
    if not variant:
        raise NoProgram("; ".join(reasons) or f"Nearfield does not know its MPI {mpi}")
    version = " ".join(version.partition("\n")[0].partition(",")[0].replace("Version:", "").split())
    return f"served, {version} ({mpi}), by libnearfield-{variant}.so"


def explain_absence(command: list[str], env: dict[str, str]) -> list[str]:
    """Returns why the programs of a launcher's command line are not served, if none of their processes has left a reason."""
    named = _programs(command)
    if (preloads := _replacement([*command, *map(_script, [command[0], *named])])) is not None:
        return [
            f"LD_PRELOAD={preloads}, which the command sets, takes the place of Nearfield's; set it before `nearfield run`,"
            " which keeps what is there, or let the command append to LD_PRELOAD"
        ]
    verdicts = [check(word, env) for word in named]
    return [str(verdict) for verdict in verdicts if not verdict.served]


def _programs(command: list[str]) -> list[str]:
    """The programs that a command line names by paths; if there are none, the first word found in PATH. Launchers do not count."""
    words = [word for word in command if not word.startswith("-") and Path(word).name not in LAUNCHERS]
    paths = [word for word in words if os.access(word, os.X_OK) and Path(word).is_file()]
    return list(dict.fromkeys(paths))[:4] or [word for word in words if shutil.which(word)][:1]


def _script(file: str) -> str:
    """The text of a script; "" for any other file."""
    try:
        with open(file, "rb") as opened:
            text = opened.read(1 << 16)
    except OSError:
        return ""
    return text.decode(errors="replace") if text.startswith(b"#!") else ""


def _replacement(texts: list[str]) -> str | None:
    """The value of LD_PRELOAD, without Nearfield, that a command (NAME=VALUE, or NAME and VALUE) or a line of a script sets; else None."""
    pairs = [f"LD_PRELOAD={value}" for name, value in zip(texts, texts[1:]) if name == "LD_PRELOAD"]
    for value in SETS_PRELOADS.findall("\n".join([*texts, *pairs])):
        if "libnearfield" not in value and "$" not in value and value:
            return value
    return None


def _with_scripts(words: list[str]) -> list[list[str]]:
    """Splits a command line into programs. A Python interpreter and the script that follows it are one of them."""
    programs: list[list[str]] = []
    for word in words:
        if programs and len(programs[-1]) == 1 and is_interpreter(programs[-1][0]) and word.endswith(".py"):
            programs[-1].append(word)
        else:
            programs.append([word])
    return programs


def check_all(words: list[str], env: dict[str, str]) -> list[Verdict]:
    """Judges each program, and each script with its interpreter, of a list. Raises NotBuilt, ValueError."""
    return [(check_script if len(program) == 2 else check)(*program, env) for program in _with_scripts(words)]
