"""Reads what the kernel and the loader see of a program: script or not, architecture, loader, libraries."""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

# Symbols that are looked for; all others are passed over.
SYMBOLS = (b"PMPI_Init", b"MPI_Init", b"dlopen")
MACHINES = {3: "x86", 21: "PowerPC", 22: "S/390", 40: "ARM", 62: "x86-64", 183: "AArch64", 243: "RISC-V"}
PROGRAM, LIBRARY = 2, 3
INTERPRETER = 3  # of segments
ALL_SYMBOLS, DYNAMIC_SYMBOLS = 2, 11  # of sections
DEEPEST_SCRIPT = 4  # that the kernel follows


class NoProgram(Exception):
    """It cannot be started; the text says why."""


@dataclass
class Object:
    """What the ELF headers of a program or library tell."""

    path: Path
    machine: str
    bits: int
    loader: str | None = None
    has_mpi_inside: bool = (
        False  # a program that an MPI is linked into, and that does not offer it to libraries
    )
    # The names of SYMBOLS that the object defines, and those that it takes from other objects.
    defined: set[str] = field(default_factory=set)
    wanted: set[str] = field(default_factory=set)

    def runs_beside(self, other: Object) -> bool:
        """Whether one process can hold both."""
        return (self.machine, self.bits) == (other.machine, other.bits)


def find_program(name: str) -> Path:
    """The file that a launcher would start. Raises NoProgram."""
    if "/" not in name:
        found = shutil.which(name)
        if not found:
            raise NoProgram(f"it is not in PATH; for a program in this directory write ./{name}")
        return Path(found).absolute()
    path = Path(name).absolute()
    if not path.exists():
        raise NoProgram("there is no such file")
    if not path.is_file():
        raise NoProgram("it is not a file")
    if not os.access(path, os.X_OK):
        raise NoProgram("it is not executable (chmod +x)")
    return path


def interpreter_of(path: Path) -> str | None:
    """The interpreter that a script names in its first line; with env, the word after env's options. None if it is no script."""
    with path.open("rb") as file:
        first = file.read(256).split(b"\n")[0].decode(errors="replace")
    if not first.startswith("#!"):
        return None
    words = first[2:].split()
    if not words:
        raise NoProgram("its first line names no interpreter")
    if Path(words[0]).name != "env":
        return words[0]
    if not (named := _behind_env(words[1:])):
        raise NoProgram("its first line names no interpreter after env")
    return named


def _behind_env(words: list[str]) -> str | None:
    """The program that env starts, behind its options and assignments."""
    rest = iter(words)
    for word in rest:
        for glued in ("-S", "--split-string="):
            if word.startswith(glued):
                word = word.removeprefix(glued)
        if word in ("-u", "--unset", "-C", "--chdir"):
            next(rest, None)  # their value
        elif word and not word.startswith("-") and "=" not in word:
            return word
    return None


def through_scripts(path: Path) -> list[Path]:
    """The program and the interpreters that it leads to; the last one is no script. Raises NoProgram."""
    chain = [path]
    while interpreter := interpreter_of(chain[-1]):
        if len(chain) > DEEPEST_SCRIPT:
            raise NoProgram("its interpreter is a script, whose interpreter is a script too, and so on")
        try:
            chain.append(find_program(interpreter))
        except NoProgram as error:
            raise NoProgram(f"its interpreter is {interpreter}: {error}") from None
    return chain


def read_object(path: Path) -> Object:
    """Reads the headers. Raises NoProgram where there are none, or they are broken."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
            return _read(path, data)
    except OSError as error:
        raise NoProgram(f"it cannot be read: {error.strerror}") from None
    except Exception:  # whatever broken headers lead the reader to
        raise NoProgram(
            "it is neither a program nor a script with a first line that names its interpreter"
        ) from None


def _read(path: Path, data: mmap.mmap) -> Object:
    if data[:4] != b"\x7fELF":
        raise ValueError("no ELF")
    bits, order = {1: 32, 2: 64}[data[4]], {1: "<", 2: ">"}[data[5]]
    word = "Q" if bits == 64 else "I"
    header = struct.unpack_from(f"{order}HHI3{word}I6H", data, 16)
    kind, machine, segments_at, sections_at = header[0], header[1], header[4], header[5]
    segment_size, segment_count, section_size, section_count = header[8:12]
    if kind not in (PROGRAM, LIBRARY):
        raise ValueError("neither a program nor a library")
    about = Object(path, MACHINES.get(machine, f"machine {machine}"), bits)
    for n in range(segment_count):
        segment = struct.unpack_from(f"{order}2I6{word}", data, segments_at + n * segment_size)
        if segment[0] == INTERPRETER:
            at, size = (segment[2], segment[5]) if bits == 64 else (segment[1], segment[4])
            about.loader = data[at : at + size].rstrip(b"\0").decode()
    # Type, offset, length and the number of the section with the names, of each.
    sections = [
        (found[1], *found[4:7])
        for n in range(section_count)
        for found in [struct.unpack_from(f"{order}2I4{word}2I", data, sections_at + n * section_size)]
    ]
    for section in sections:
        if section[0] == DYNAMIC_SYMBOLS:
            for name, there in _symbols(
                data, section, sections, f"{order}IBBH2Q" if bits == 64 else f"{order}3IBBH"
            ):
                (about.defined if there else about.wanted).add(name)
        elif section[0] == ALL_SYMBOLS and about.loader:
            own = _symbols(data, section, sections, f"{order}IBBH2Q" if bits == 64 else f"{order}3IBBH")
            about.has_mpi_inside = any(there and name == "PMPI_Init" for name, there in own)
    return about


def _symbols(data: mmap.mmap, section: tuple, sections: list[tuple], form: str) -> Iterator[tuple[str, bool]]:
    """The names of SYMBOLS in a section's symbol table, each with whether the object defines it."""
    _, at, size, link = section
    _, names_at, names_size, _ = sections[link]
    places: dict[int, str] = {}
    for name in SYMBOLS:
        # Names may be the ends of others.
        found = data.find(name + b"\0", names_at, names_at + names_size)
        while found >= 0:
            places[found - names_at] = name.decode()
            found = data.find(name + b"\0", found + 1, names_at + names_size)
    if not places:
        return
    entry = struct.Struct(form)
    which = 3 if entry.size == 24 else 5  # the number of the section in which it is defined
    for symbol in entry.iter_unpack(data[at : at + size // entry.size * entry.size]):
        if symbol[0] in places:
            yield places[symbol[0]], symbol[which] != 0


def privileged(path: Path) -> str | None:
    """Why the loader ignores LD_PRELOAD when we start this file; None: it does not."""
    about = path.stat()
    if os.statvfs(path).f_flag & os.ST_NOSUID:
        return None
    if about.st_mode & 0o4000 and about.st_uid != os.getuid():
        return "setuid"
    if about.st_mode & 0o2010 == 0o2010 and about.st_gid != os.getgid():
        return "setgid"
    try:
        os.getxattr(path, "security.capability")
    except OSError:
        return None
    return "of file capabilities" if os.getuid() else None


def ask_loader(program: Object, env: dict[str, str]) -> tuple[list[Path], list[str]]:
    """The objects that the program's own loader would map, in its order, and what it complains about.

    The program does not run: its loader only lists, as for ldd. Raises NoProgram if the loader cannot be started.
    """
    try:
        listed = subprocess.run(
            [program.loader, "--list", str(program.path)], env=env, capture_output=True, text=True, timeout=30
        )
    except OSError as error:
        raise NoProgram(f"its loader {program.loader} cannot be started: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise NoProgram(f"its loader {program.loader} does not answer") from None
    objects, complaints = [], [line.strip() for line in listed.stderr.splitlines() if line.strip()]
    for line in listed.stdout.splitlines():
        name, arrow, rest = line.strip().partition(" => ")
        if arrow and rest.startswith("not found"):
            complaints.append(f"{name} is not found")
        else:
            file = (rest if arrow else name).rpartition(" (0x")[0]
            if file.startswith("/"):
                objects.append(Path(file))
    return objects, complaints
