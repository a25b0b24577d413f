"""What `nearfield bench` measures, by name."""

import re
from collections.abc import Sequence

from nearfield.libraries import IS_CHECKOUT, PACKAGE, ROOT

# Installed, a copy of it lies in the package.
_TABLE = ((ROOT / "engine/collectives" if IS_CHECKOUT else PACKAGE) / "operations.def").read_text()


def _rows(macro: str) -> tuple[str, ...]:
    return tuple(re.findall(rf"^{macro}\((\w+),", _TABLE, re.MULTILINE))


# Collectives with algorithms, and those that are made of messages; neighbourhoods are not measured.
WITH_ALGORITHMS = _rows("OPERATION")
OF_MESSAGES = tuple(name for name in _rows("OF_MESSAGES") if not name.startswith("neighbor"))
# What is measured where nobody names any.
OPERATIONS = ",".join(WITH_ALGORITHMS)
COLLECTIVES = WITH_ALGORITHMS + OF_MESSAGES
# Non-blocking collectives, which the benchmark waits for at once.
NONBLOCKING = tuple(f"i{name}" for name in COLLECTIVES)

# Messages (bench/messages.hpp): patterns of benchmarks, those of programs, and calls that find nothing.
PATTERNS = ("latency", "bw", "bibw", "message-rate", "multi-latency", "multi-pair")
PATTERNS += ("exchange", "ddt-vector", "ddt-indexed", "ddt-subarray")
AS_PROGRAMS = ("sendrecv", "waitall", "waits", "anysource", "testloop", "halo", "waitany", "probe")
FINDS_NOTHING = ("test", "testall", "testany", "iprobe")
MESSAGES = PATTERNS + AS_PROGRAMS + FINDS_NOTHING
PROTOCOLS = ("queue", "fastbox", "copy-buffers", "cma", "mapped", "auto")
# One row, whatever the sizes and buffers.
WITHOUT_SIZE = ("barrier", "ibarrier", *FINDS_NOTHING)

# On windows (bench/one_sided.hpp): what moves or combines data, what does so with a word of 8 bytes, and what
# synchronizes, measured alone as well as with a put of each size.
MOVES = ("put", "get", "accumulate", "get-accumulate")
ON_WORDS = ("fetch-and-op", "compare-and-swap")
SYNCHRONIZES = ("fence", "pscw", "lock", "lock-shared")
ONE_SIDED = MOVES + ON_WORDS + SYNCHRONIZES
# What is made of whole elements of 8 bytes.
_COMBINED = re.findall(r"^OPERATION\((\w+),\s*\{.*?\},\s*\{.*?\},\s*(\w+)", _TABLE, re.MULTILINE)
WITH_ELEMENTS = tuple(op for op, combined in _COMBINED if combined != "none")
WITH_ELEMENTS += (*(f"i{op}" for op in WITH_ELEMENTS), "accumulate", "get-accumulate")
WITH_ELEMENTS += tuple(op for op in PATTERNS if op.startswith("ddt-"))
MEASURED = COLLECTIVES + NONBLOCKING + MESSAGES + ONE_SIDED
WINDOWS = ("create", "allocate", "shared", "dynamic")
TARGETS = ("one", "apart", "own")

# How calls follow each other: as programs make them, and as other benchmarks do (bench/standard_loops.hpp).
OWN_LOOP = "own"
LOOPS = (OWN_LOOP, "imb", "imb-sync", "osu")


def sizes_of(op: str, sizes: list[int]) -> list[int]:
    """The sizes in bytes at which an operation is measured, of those asked for."""
    if op in WITHOUT_SIZE:
        return [0]
    if op in ON_WORDS:
        return [8]
    return [0, *(size for size in sizes if size)] if op in SYNCHRONIZES else sizes


def cells_of_job(op: str, sizes: list[int], buffers: list[str], loops: Sequence[str] = (OWN_LOOP,)) -> int:
    """Returns the number of cells of a job. Each size has a cell for each kind of buffers. Sizes without data have one, and loops of
    other benchmarks have one kind of buffers."""
    lengths = sizes_of(op, sizes)
    without_data = len(lengths) if op in WITHOUT_SIZE + ON_WORDS else op in SYNCHRONIZES
    kinds = {loop: len(buffers) if loop == OWN_LOOP else 1 for loop in loops}
    return sum(without_data + (len(lengths) - without_data) * count for count in kinds.values())
