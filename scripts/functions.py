"""Writes the table of MPI functions, mpi/functions.def, out of the standard's machine-readable form (pympistandard) and
mpi/functions.toml, which says what serves each function.

    functions.py           writes the table
    functions.py --check   fails if the table differs from what this would write, or if a header of a host on this machine
                           declares a function that neither source knows

Needs pympistandard (requirements/main.txt); builds do not, since what it writes is committed.
"""

from __future__ import annotations

import functools
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "mpi/functions.def"
DEBIAN = Path("/usr/include/x86_64-linux-gnu/mpich"), Path("/usr/lib/x86_64-linux-gnu/openmpi/include")
# Where hosts declare functions; what a machine does not have is left out.
HEADERS = [
    ROOT / ".venv/include/mpi_abi.h",
    ROOT / ".venv/include/mpi_proto.h",
    ROOT / ".hosts/impi/include/mpi.h",
    ROOT / ".hosts/openmpi/include/mpi.h",
    *sorted((ROOT / ".hosts/openmpi/include/openmpi/mpiext").glob("*_c.h")),
    DEBIAN[0] / "mpi.h",
    DEBIAN[0] / "mpi_proto.h",
    DEBIAN[1] / "mpi.h",
]
COUNTS = ("XFER_NUM_ELEM", "XFER_NUM_ELEM_NNI", "POLYXFER_NUM_ELEM", "POLYXFER_NUM_ELEM_NNI")
Side = dict[str, int | str]


def carriers() -> dict:
    """mpi/functions.toml."""
    return tomllib.loads((ROOT / "mpi/functions.toml").read_text())


def forms(name: str) -> tuple[str, str, str]:
    """A collective's blocking, non-blocking and persistent form."""
    return name, f"I{name[0].lower()}{name[1:]}", f"{name}_init"


def fits(rule: str, name: str) -> bool:
    """Whether a rule of functions.toml, a regular expression that may have several lines, matches the name."""
    return bool(re.fullmatch(rule.replace("\n", ""), name))


# ---------------------------------------------------------------- the standard


@dataclass
class Prototype:
    """A C prototype: the result, the declarations of the parameters (arrays as pointers) and their names."""

    result: str
    parameters: list[str]
    names: list[str]

    @classmethod
    def of(cls, result: str, parameters: str) -> Prototype:
        """Makes a prototype out of the text of a declaration."""
        texts = [] if parameters == "void" else parameters.split(", ")
        declared = [
            re.sub(
                r"^(.*?) ?(\w+)\[\]$",
                r"\1* \2",
                re.sub(r"^(.*) (\w+)\[\]\[(\d)\]$", r"\1 (*\2)[\3]", text),
            )
            for text in texts
        ]
        names = [re.search(r"(\w+)(\)\[\d\])?$", text)[1] for text in declared]
        return cls(result, declared, names)


@functools.cache
def kinds() -> dict[str, list[dict]]:
    """The standard's description of each function's C parameters, by the function's name in lower case."""
    all_of_them = json.loads(files("pympistandard").joinpath("data/apis.json").read_text())
    return {
        name.removeprefix("mpi_"): [p for p in of["parameters"] if "c_parameter" not in p["suppress"]]
        for name, of in all_of_them.items()
    }


@functools.cache
def prototypes() -> dict[str, Prototype]:
    """The standard's functions in C by their names without MPI_, large-count forms among them."""
    import pympistandard

    pympistandard.use_api_version(1)
    found = {}
    for procedure in pympistandard.all_iso_c_procedures():
        texts = [procedure.express.iso_c]
        texts += [procedure.express.embiggen.iso_c] if procedure.has_embiggenment() else []
        for text in texts:
            words = str(text).replace("MPI_Fint", "int")  # which the standard's ABI leaves to Fortran
            result, name, parameters = re.fullmatch(r"(.*?) ?\bMPI_(\w+)\((.*)\)", words).groups()
            found[name] = Prototype.of(result, parameters)
    return found


# ---------------------------------------------------------------- what arguments are


def fields(side: Side) -> str:
    """The C++ initializer of a side (SideRoles)."""
    order = ("buffer", "count", "type", "partner", "tag", "lists", "typed", "root_only")
    return "{" + ", ".join(f".{key} = {side[key]}" for key in order if key in side) + "}"


def sides(parameters: list[dict]) -> tuple[Side, Side]:
    """The two sides of a call, what it sends and what it receives: positions of buffer, count, type, partner and tag."""
    sends: Side = {}
    receives: Side = {}
    buffers: list[int] = []
    count: Side = {}
    by_rank = {"TAG", "WINDOW"} & {p["kind"] for p in parameters}
    creates = any(p["kind"] == "COMMUNICATOR" and p["param_direction"] == "out" for p in parameters)
    latest: list[Side] = []
    for at, p in enumerate(parameters):
        if p["kind"] == "BUFFER":
            buffers.append(at)
        elif p["kind"] in COUNTS:
            count = {"count": at} | ({"lists": "true"} if p["length"] is not None else {})
        elif p["kind"] == "DATATYPE" and buffers:
            latest = []
            for buffer in (buffers[0], buffers[-1]) if len(buffers) > 1 else buffers:
                what = parameters[buffer]
                # The standard calls the buffer of MPI_Precv_init an input, but not constant.
                given = what["param_direction"] == "inout" or (
                    what["param_direction"] == "in" and what["constant"]
                )
                side = sends if given else receives
                side |= {"buffer": buffer, "type": at} | count
                side |= {"typed": "true"} if p["length"] is not None else {}
                side |= {"root_only": "true"} if what["root_only"] else {}
                latest.append(side)
            buffers, count = [], {}
        elif p["kind"] in ("RANK", "RANK_NNI") and by_rank and not creates and p["length"] is None:
            if "WINDOW" in by_rank and not latest:
                continue  # of a lock, which moves nothing
            if "partner" in sends and not receives:  # MPI_Sendrecv_replace
                receives |= {key: sends[key] for key in ("buffer", "count", "type")}
                latest = [receives]
            for side in latest[:1] or [receives]:  # of a probe
                side["partner"] = at
        elif p["kind"] == "TAG" and not creates:
            for side in (receives, sends):
                if side.get("partner") == at - 1:
                    side["tag"] = at
    return sends, receives


def roles(name: str, parameters: list[dict]) -> list[str]:
    """Members of a function's traits (mpi/traits.hpp): what its arguments are."""
    found: dict[str, int | str] = {}
    for at, p in enumerate(parameters):
        if p["kind"] == "COMMUNICATOR" and p["param_direction"] == "in":
            found.setdefault("communicator", at)
        if p["kind"] == "WINDOW" and p["param_direction"] == "in":
            found.setdefault("window", at)
        if p["kind"] == "FILE" and p["param_direction"] != "out":
            found.setdefault("file", at)
        if p["kind"] == "OPERATION" and p["param_direction"] == "in":
            found["operation"] = at
        if p["kind"] == "REQUEST" and (p["param_direction"] == "inout" or p["pointer"]) and not p["constant"]:
            found["requests"] = at
            if p["length"] is not None:
                lengths = [i for i, q in enumerate(parameters[:at]) if q["kind"] == "ARRAY_LENGTH_NNI"]
                found["request_count"] = lengths[-1]
    sends, receives = sides(parameters)
    before = found.get("communicator", 0) - 1
    if before >= 0 and parameters[before]["kind"] == "RANK" and not {"TAG"} & {p["kind"] for p in parameters}:
        found["root"] = before
    order = ("communicator", "window", "file", "root", "operation", "requests", "request_count")
    words = [f".{key} = {found[key]}" for key in order if key in found]
    words += [f".sends = {fields(sends)}"] if sends else []
    words += [f".receives = {fields(receives)}"] if receives else []
    words += [".neighbors = true"] if "eighbor" in name else []
    words += [".large = true"] if name.endswith("_c") else []
    return words


# ---------------------------------------------------------------- the table


@dataclass
class Row:
    """A function that libnearfield.so exports."""

    macro: str  # of functions.def
    name: str
    kind: str  # FunctionKind
    prototype: Prototype
    words: list[str]  # of its traits
    served: str = ""  # the file and the function that serve it

    def line(self) -> str:
        """The function's line in functions.def."""
        parameters = "(" + (", ".join(self.prototype.parameters) or "void") + ")"
        served = [self.served] if self.served else []
        words = [self.name, self.prototype.result, parameters, self.kind, *served, *self.words]
        return f"{self.macro}({', '.join(words)})"


def macro_of(name: str, family: dict) -> str:
    """The macro for a function that every host has."""
    return "COLLECTIVE" if name in family.get("collectives", {}) else "OURS"


def own_rows(data: dict) -> Iterator[Row]:
    """Rows of the functions that Nearfield defines; each large-count form follows its int form."""

    def rows(name: str, family: dict, optional: bool, by: str) -> Iterator[Row]:
        for suffix in ("", "_c") if f"{name}_c" in prototypes() else ("",):
            full = name + suffix
            prototype = prototypes().get(full)
            if not prototype:
                raise SystemExit(f"mpi/functions.toml names MPI_{full}, which the standard has not")
            lacks = optional or suffix or fits(data["since_mpi_4"], name)
            of_handle = re.search(r"_(c2f|f2c|toint|fromint)$", name)
            macro = "HANDLE" if of_handle else "OPTIONAL" if lacks else macro_of(name, family)
            words = [] if of_handle else roles(full, kinds()[name.lower()])
            numbered = re.sub(r"\bFunction::\w+", lambda m, suffix=suffix: m[0] + suffix, by)
            served = f"{family['entries']}, ({numbered})" if by else f"by_hand, ({full})"
            yield Row(macro, full, family["kind"], prototype, words, served)

    for family in data["families"]:
        for name in family.get("by_hand", "").split():
            yield from rows(name, family, False, "")
        for name, of in family.get("functions", {}).items():
            template, arguments = re.fullmatch(r"(\w+)(?:<(.*)>)?", of).groups()
            words = [f"Function::{w}" if w in prototypes() else w for w in (arguments or "").split(", ") if w]
            yield from rows(name, family, False, f"{template}<{', '.join([f'Function::{name}', *words])}>")
        for name, of in family.get("collectives", {}).items():
            for form, when in zip(forms(name), ("blocking", "nonblocking", "persistent"), strict=True):
                by = f"{when}<Function::{form}, classes::{of}<Collective::{name.lower()}>>"
                yield from rows(form, family, when == "persistent", by)


def rows_of(data: dict) -> list[Row]:
    """Rows of all functions, in the order of their numbers (mpi/numbers.hpp)."""
    found = list(own_rows(data))
    own = {row.name for row in found}
    for name, prototype in sorted(prototypes().items(), key=lambda item: item[0].removesuffix("_c")):
        if name in own or fits(data["never_waits"], name):
            continue
        plain = name.removesuffix("_c")
        kind = next((rule["kind"] for rule in data["passed_on"] if fits(rule["rule"], plain)), None)
        if not kind:
            raise SystemExit(f"mpi/functions.toml does not say what becomes of MPI_{name}")
        parameters = kinds()[plain.lower()]
        words = [".moves_data = true"] if any(p["kind"] == "BUFFER" for p in parameters) else []
        words += [".meets_nobody = true"] if fits(data["meets_nobody"], name) else []
        found.append(Row("BLOCKING", name, kind, prototype, words + roles(name, parameters)))
    for key, macro in (("blocking_extensions", "BLOCKING_EXTENSION"), ("served_extensions", "EXTENSION")):
        for name, (kind, like, parameters) in data[key].items():
            words = [".moves_data = true"] if "void* buf" in parameters else []
            words += roles(name, kinds()[like.lower()])
            found.append(Row(macro, name, kind, Prototype.of("int", parameters), words))
    return found


HEAD = """\
/* Every MPI function that libnearfield.so exports, in the order of their numbers (mpi/numbers.hpp), as

     MACRO(name, result, (parameters), kind, entries, (function), members of FunctionTraits beside kind (mpi/traits.hpp)...)

   Made by scripts/functions.py from mpi/functions.toml and the standard's machine-readable form; names are without MPI_.

     OURS                 Nearfield has a version, and every host has it
     COLLECTIVE           the same of a collective's blocking form; default: as OURS
     OPTIONAL             a host of an older standard lacks it; default: as OURS
     HANDLE               of handles, by the host's own functions of other names; default: as OURS
     BLOCKING             stays the host's but may block in it: the progress thread serves meanwhile
     BLOCKING_EXTENSION   the same of a host's own: MPIX_, X_ here; default: as BLOCKING
     EXTENSION            a host's own that takes our handles; I_ here: MPII_

   The function is the shim's that serves it, the entries those that it is compiled with (mpi/shim/process/entry.hpp);
   what is the host's has neither, nor have extensions.
   A large-count form, name_c, is behind its int form. What is not defined before this file is included is left out; or
   define EACH(symbol, name) alone, which gets all. Nothing here depends on an ABI. */
#ifdef EACH
#define OURS(name, ...) EACH(MPI_##name, name)
#define BLOCKING(name, ...) EACH(MPI_##name, name)
#define BLOCKING_EXTENSION(name, ...) EACH(MPI##name, name)
#define EXTENSION(name, ...) EACH(MPI##name, name)
#endif
#ifndef OURS
#define OURS(...)
#endif
#ifndef COLLECTIVE
#define COLLECTIVE(...) OURS(__VA_ARGS__)
#endif
#ifndef OPTIONAL
#define OPTIONAL(...) OURS(__VA_ARGS__)
#endif
#ifndef HANDLE
#define HANDLE(...) OURS(__VA_ARGS__)
#endif
#ifndef BLOCKING
#define BLOCKING(...)
#endif
#ifndef BLOCKING_EXTENSION
#define BLOCKING_EXTENSION(...) BLOCKING(__VA_ARGS__)
#endif
#ifndef EXTENSION
#define EXTENSION(...)
#endif
"""
MACROS = ("EACH", "OURS", "COLLECTIVE", "OPTIONAL", "HANDLE", "BLOCKING", "BLOCKING_EXTENSION", "EXTENSION")


def generate(data: dict) -> str:
    """The table."""
    undefine = "".join(f"#undef {macro}\n" for macro in MACROS)
    return HEAD + "\n".join(row.line() for row in rows_of(data)) + "\n" + undefine


def unknown_to(rows: list[Row], data: dict) -> set[str]:
    """Functions that headers of this machine declare and the table lacks, although they may block."""
    known = {row.name for row in rows}
    found = set()
    for header in filter(Path.exists, HEADERS):
        text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", header.read_text(errors="replace"), flags=re.DOTALL)
        names = re.findall(r"\bint\s+MPI(X?_\w+)\s*\([^;{)]*\)[^;{]*;", text)
        found |= {name.removeprefix("_") for name in names}
    return {name for name in found - known if not fits(data["never_waits"], name)}


def main() -> int:
    """Writes the table or compares it."""
    data = carriers()
    text = generate(data)
    if sys.argv[1:] != ["--check"]:
        TABLE.write_text(text)
        return 0
    wrong = TABLE.read_text() != text
    if wrong:
        print("mpi/functions.def is not what the data say; run scripts/functions.py", file=sys.stderr)
    unknown = unknown_to(rows_of(data), data)
    if unknown:
        print(
            f"mpi/functions.toml does not say what becomes of {', '.join(sorted(unknown))}", file=sys.stderr
        )
    return bool(wrong or unknown)


if __name__ == "__main__":
    sys.exit(main())
