"""Finds the libraries and programs of Nearfield: in a checkout, in the installed package, or below the prefix of CMake."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from nearfield import __version__

NAMES = ("libnearfield.so", "libnearfield-heap.so")
DEFAULT_HEAP = "shared"  # docs/dev/decisions.md says why
PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parent  # of a checkout
IS_CHECKOUT = (ROOT / "CMakeLists.txt").exists()
# The program `nearfield` of which this process is a part; "" where Python was started by itself.
COMMAND = getattr(sys.modules.get("__main__"), "nearfields_command", "")
BUILD = Path(COMMAND).parents[1] if COMMAND and IS_CHECKOUT else ROOT / "build/release"
# What pip has installed; a checkout; PREFIX/lib, where this package is lib/nearfield/python/nearfield.
PLACES = [PACKAGE / "lib", BUILD / "lib", *list(PACKAGE.parents)[2:3]]


class NotBuilt(Exception):
    """The library is not there; the text says what to do."""


def library_directory() -> Path:
    """The directory of libnearfield.so: NEARFIELD_LIBDIR, inside the package, the checkout's build, or below the prefix.

    Raises NotBuilt when there is none.
    """
    chosen = os.environ.get("NEARFIELD_LIBDIR")
    places = [Path(chosen)] if chosen else PLACES
    for place in places:
        if (place / NAMES[0]).exists():
            if chosen:
                _compare_versions(place)
            return place
    looked = ", ".join(str(place) for place in places)
    raise NotBuilt(f"libnearfield.so is not in {looked}; {_advice()}, or set NEARFIELD_LIBDIR")


def _advice() -> str:
    return "run `make build`" if IS_CHECKOUT else "install it again"


@functools.cache
def _compare_versions(place: Path) -> None:
    """Prints a warning if the chosen libraries are of another version than this command."""
    import ctypes

    try:
        version = ctypes.CDLL(str(place / NAMES[0])).nearfield_version
    except (AttributeError, OSError):
        return  # whoever loads it will say why
    version.restype = ctypes.c_char_p
    if (theirs := version().decode()) != __version__:
        print(
            f"nearfield: the libraries in {place} are of version {theirs}, this command is of {__version__}",
            file=sys.stderr,
        )


def preloaded(heap: str) -> list[str]:
    """The libraries to preload; `heap` is shared or off. Raises NotBuilt, ValueError for other words and for directories that
    LD_PRELOAD cannot name."""
    if heap not in ("shared", "off"):
        raise ValueError(f"the heap is shared or off, not {heap}")
    return paths_to_preload(NAMES if heap == "shared" else NAMES[:1])


def paths_to_preload(names: Sequence[str]) -> list[str]:
    """The paths of some of NAMES for LD_PRELOAD. Raises NotBuilt; ValueError if LD_PRELOAD cannot name files there."""
    directory = _loadable_directory()
    return [f"{directory}/{name}" for name in names]


def _loadable_directory() -> Path:
    """library_directory(), or a link to it whose path LD_PRELOAD can name."""
    directory = library_directory()
    return directory if _can_be_preloaded(directory) else _linked(directory)


def _can_be_preloaded(directory: Path) -> bool:
    """Whether LD_PRELOAD can name files in it: blanks and colons end names."""
    return not any(character.isspace() or character == ":" for character in str(directory))


def cache_directory() -> Path:
    """The directory in which Nearfield stores this user's figures and tuning of this machine."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nearfield"


def _linked(directory: Path) -> Path:
    """Makes a link to the directory in cache_directory(), whose path LD_PRELOAD can name."""
    link = cache_directory() / f"lib-{hashlib.sha256(os.fsencode(directory)).hexdigest()[:16]}"
    if not _can_be_preloaded(link):
        raise ValueError(
            f"the loader does not accept LD_PRELOAD with a blank or a colon in a path: {directory}, {link}"
        )
    try:
        if not link.is_symlink() or Path(os.readlink(link)) != directory:
            link.parent.mkdir(parents=True, exist_ok=True)
            fresh = link.with_name(f"{link.name}.{os.getpid()}")
            fresh.symlink_to(directory)
            fresh.replace(link)
    except OSError as error:
        raise ValueError(f"{directory} cannot be preloaded, nor a link to it made: {error}") from error
    return link


def without_nearfield(preloaded: str) -> str:
    """The names in a value of LD_PRELOAD except Nearfield's libraries. Blanks and colons separate names."""
    return " ".join(name for name in preloaded.replace(":", " ").split() if "libnearfield" not in name)


def with_nearfield(env: dict[str, str], names: Sequence[str] = ()) -> dict[str, str]:
    """The environment with Nearfield preloaded: some of NAMES, or what NEARFIELD_HEAP in it asks for. Raises ValueError, NotBuilt."""
    return env | what_loads(env, names)


def what_loads(env: dict[str, str], names: Sequence[str] = ()) -> dict[str, str]:
    """The variables that with_nearfield sets."""
    ours = paths_to_preload(names) if names else preloaded(env.get("NEARFIELD_HEAP") or DEFAULT_HEAP)
    others = without_nearfield(env.get("LD_PRELOAD", ""))
    changed = {
        "LD_PRELOAD": " ".join([*ours, others]).strip(),
        "NEARFIELD_LIBDIR": str(_loadable_directory()),
    }
    # Programs built with AddressSanitizer refuse to start when anything is preloaded before its library.
    sanitizer = env.get("ASAN_OPTIONS", "")
    if "verify_asan_link_order" not in sanitizer:
        changed["ASAN_OPTIONS"] = ":".join(filter(None, [sanitizer, "verify_asan_link_order=0"]))
    return changed


def command() -> Path:
    """The path of the program `nearfield` that has started this Python, or of this installation's. Raises NotBuilt."""
    places = [Path(COMMAND)] if COMMAND else []
    places += [BUILD / "bin/nearfield", Path(sys.executable).with_name("nearfield")]
    places += [parent / "bin/nearfield" for parent in PACKAGE.parents]
    for place in places:
        if place.is_file():
            return place
    raise NotBuilt(f"{places[0]} is not there; {_advice()}")


def program(name: str) -> Path:
    """A program of Nearfield's, e.g. nearfield-probe. Raises NotBuilt."""
    places = dict.fromkeys([library_directory(), *PLACES])
    paths = [where / name for place in places for where in (place.parent / "bin", place / "nearfield/bin")]
    for path in paths:
        if path.exists():
            return path
    if (PACKAGE / "lib").exists():
        raise NotBuilt(
            f"{name} is not in the wheel: it comes with a build from the source (docs/user/start.md, Installing)"
        )
    raise NotBuilt(f"{paths[0]} is not there; {_advice()}")
