"""What a program is to the kernel and to its loader: script, architecture, loader, libraries; by pyelftools."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

DEEPEST_SCRIPT = 4  # that the kernel follows


class NoProgram(Exception):
    """It cannot be started; the text says why."""


@dataclass
class Object:
    """What the headers of a program or library say."""

    path: Path
    machine: str
    bits: int
    loader: str | None = None
    has_mpi_inside: bool = (
        False  # a program that an MPI is linked into, and that does not offer it to libraries
    )
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
            raise NoProgram(f"it is not found in PATH; a program of this directory is ./{name}")
        return Path(found).absolute()
    path = Path(name).absolute()
    if not path.exists():
        raise NoProgram("there is no such file")
    if not path.is_file():
        raise NoProgram("it is no file")
    if not os.access(path, os.X_OK):
        raise NoProgram("it is not executable (chmod +x)")
    return path


def interpreter_of(path: Path) -> str | None:
    """The program that a script names in its first line, behind env's options; None where it is no script."""
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
        raise NoProgram("its first line names no interpreter behind env")
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
            raise NoProgram("scripts are interpreted by scripts, and so on")
        try:
            chain.append(find_program(interpreter))
        except NoProgram as error:
            raise NoProgram(f"its interpreter is {interpreter}: {error}") from None
    return chain


def read_object(path: Path) -> Object:
    """Reads the headers. Raises NoProgram where there are none, or they are broken."""
    try:
        with path.open("rb") as file:
            return _read(path, ELFFile(file))
    except OSError as error:
        raise NoProgram(f"it cannot be read: {error.strerror}") from None
    except Exception:  # whatever broken headers lead the reader to
        raise NoProgram(
            "it is neither a program nor a script with a first line that names its interpreter"
        ) from None


def _read(path: Path, elf: ELFFile) -> Object:
    if elf["e_type"] not in ("ET_EXEC", "ET_DYN"):
        raise ELFError("neither a program nor a library")
    about = Object(path, elf.get_machine_arch(), elf.elfclass)
    for segment in elf.iter_segments("PT_INTERP"):
        about.loader = segment.get_interp_name()
    for section in elf.iter_sections():
        if isinstance(section, SymbolTableSection) and section.name == ".dynsym":
            for symbol in section.iter_symbols():
                there = symbol["st_shndx"] != "SHN_UNDEF"
                (about.defined if there else about.wanted).add(symbol.name)
        elif isinstance(section, SymbolTableSection) and about.loader:
            own = section.get_symbol_by_name("PMPI_Init") or []
            about.has_mpi_inside = any(symbol["st_shndx"] != "SHN_UNDEF" for symbol in own)
    return about


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

    Nothing of the program runs: its loader lists, as ldd has it do. Raises NoProgram where that is not to be had.
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
