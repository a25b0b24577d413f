"""Where the built libraries and programs of Nearfield are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

NAMES = ("libnearfield.so", "libnearfield-heap.so")
DEFAULT_HEAP = "shared"  # docs/decisions.md says why
ROOT = Path(__file__).resolve().parent.parent
PLACES = [Path(__file__).parent / "lib", ROOT / "build" / "release" / "lib"]


class NotBuilt(Exception):
    """The library is not there; the text says what to do."""


def library_directory() -> Path:
    """The directory of libnearfield.so: NEARFIELD_LIBDIR, inside the package, or the checkout's build.

    Raises NotBuilt when there is none.
    """
    chosen = os.environ.get("NEARFIELD_LIBDIR")
    places = [Path(chosen)] if chosen else PLACES
    for place in places:
        if (place / "libnearfield.so").exists():
            return place
    looked = ", ".join(str(place) for place in places)
    raise NotBuilt(f"libnearfield.so is not in {looked}; run `make build`, or set NEARFIELD_LIBDIR")


def preloaded(heap: str) -> list[str]:
    """The libraries to preload; `heap` is shared or off. Raises NotBuilt, ValueError for other words and for directories that
    LD_PRELOAD cannot name."""
    if heap not in ("shared", "off"):
        raise ValueError(f"the heap is either shared or off, not {heap}")
    return _paths(NAMES if heap == "shared" else NAMES[:1])


def _paths(names: Sequence[str]) -> list[str]:
    directory = str(library_directory())
    if any(character.isspace() or character == ":" for character in directory):
        raise ValueError(f"the loader takes no LD_PRELOAD with a blank or a colon in a path: {directory}")
    return [f"{directory}/{name}" for name in names]


def with_nearfield(env: dict[str, str], names: Sequence[str] = ()) -> dict[str, str]:
    """The environment with Nearfield preloaded: some of NAMES, or what NEARFIELD_HEAP in it asks for. Raises ValueError, NotBuilt."""
    ours = _paths(names) if names else preloaded(env.get("NEARFIELD_HEAP") or DEFAULT_HEAP)
    changed = {
        "LD_PRELOAD": " ".join([*ours, *env.get("LD_PRELOAD", "").split()]),
        "NEARFIELD_LIBDIR": str(library_directory()),
    }
    # Programs built with AddressSanitizer refuse to start when anything is preloaded before its library.
    sanitizer = env.get("ASAN_OPTIONS", "")
    if "verify_asan_link_order" not in sanitizer:
        changed["ASAN_OPTIONS"] = ":".join(filter(None, [sanitizer, "verify_asan_link_order=0"]))
    return env | changed


def program(name: str) -> Path:
    """A program of Nearfield's, e.g. nearfield-probe. Raises NotBuilt."""
    paths = [place.parent / "bin" / name for place in (library_directory(), *PLACES)]
    for path in paths:
        if path.exists():
            return path
    raise NotBuilt(f"{paths[0]} is not there; run `make build`")
