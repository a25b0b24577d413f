"""Which functions of the hosts may block, out of their headers: writes blocking.def, extensions.def and signatures.def.

    classify.py           writes them
    classify.py --check   fails when they are not what the headers of this machine ask for

A function is one that Nearfield has a version of (functions.def), one that never waits for another rank (LOCAL), or it
may block: then a stand-in progresses messages meanwhile. What no rule knows may block.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
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

# Names without MPI_, those of extensions (MPIX_) with X_ instead. These return without waiting for anybody.
LOCAL = (
    # Objects: their making, reading and naming.
    r"(Abi|Add|Attr|Error|Errhandler|Group|Info|Keyval|Op|Remove|Status|Type|T)_\w+",
    r"\w+_(attr|errhandler|keyval|errhandler_x|toint|fromint|c2f|f2c)",
    r"(Comm|File|Win)_(get|remote|set_name|compare|group|rank|size|test)\w*",
    r"(Cart|Cartdim|Graph|Graphdims)_(coords|get|map|rank|shift|neighbors\w*)|Dims_create|Topo_test",
    r"Dist_graph_neighbors\w*",
    r"(Address|Reduce_local(_c)?|Register_datarep(_c)?|(Unp|P)ack\w*|Test_cancelled|\w+_FN)",
    r"Get_(address|count|elements|hw|library|processor)\w*",
    # About the process. mpi4py takes whoever exports MPI_Get_version for an MPI that is linked already.
    r"(Abort|Initialized|Finalized|Query_thread|Is_thread_main|Pcontrol|Get_version)",
    # What starts something and is completed by others, and what only looks.
    r"I(all|barrier|bcast|exscan|gather|neighbor|reduce|scan|scatter)\w*",
    r"(All|Barrier|Bcast|Exscan|Gather|Neighbor|Precv|Psend|Reduce|Scan|Scatter)\w*_init(_c)?",
    r"File_i(read|write)\w*|Pready\w*|Parrived|Grequest_\w+",
    r"R?(accumulate|get|put|Accumulate|Get|Put)(_accumulate)?(_c)?|Fetch_and_op|Compare_and_swap",
    r"Win_(attach|detach|post|shared_query|sync)\w*",
    r"Session_(get|set)_\w+",
    r"X_(Async|Delete|Get|GPU|Grequest|Info|Op|Put|Query|Start|Stop|Type)_\w+|X_\w+_enqueue(_c)?|X_Win_[gs]et_\w+",
    r"X_Comm_(ack|failure|get|iagree|ishrink|is|revoke|test)\w*|X_Stream_(create|free|i\w+|progress)",
)
# Extensions that Nearfield has a version of; I_: what Fortran's bindings of MPICH and Intel MPI call (MPII_).
OWN_EXTENSIONS = ("X_Comm_revoke", "X_Request_is_complete", "I_Win_get_attr")
PARAMETER = re.compile(r"^(.*?)\s*(\**)\s*(\w+)?\s*((?:\[\w*\])*)$")


def declarations(header: Path) -> Iterator[tuple[str, str]]:
    """Functions that return an int, and their parameters."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", header.read_text(errors="replace"), flags=re.DOTALL)
    for name, parameters in re.findall(r"\bint\s+MPI(X?_\w+)\s*\(([^;{)]*)\)[^;{]*;", text):
        yield name.removeprefix("_"), " ".join(parameters.split())


def type_of(parameter: str) -> str:
    """The type of one parameter, without its name; arrays as pointers."""
    words, stars, name, arrays = PARAMETER.match(parameter.strip()).groups()
    if not words or words == "const":  # a type without a name
        words, name = f"{words} {name}".strip(), None
    stars += "*" if arrays else ""
    if arrays.count("[") > 1:  # char *argv[], int ranges[][3]
        raise ValueError(f"an array of arrays: {parameter}")
    words = re.sub(r"\bMPIX_\w+", "int", words)
    words = re.sub(r"^(\w+) const$", r"const \1", words)
    return words + stars


def signature(parameters: str) -> str:
    """As in a declaration of a pointer to the function."""
    if parameters in ("", "void"):
        return "(void)"
    return "(" + ", ".join(type_of(one) for one in parameters.split(",")) + ")"


def own_names(path: Path) -> set[str]:
    """The functions of functions.def, with their large-count twins."""
    found = set()
    for kind, words in re.findall(r"^(F|L|Y|YL|T|C|E)\(([^()]*)", path.read_text(), re.MULTILINE):
        words = [word.strip() for word in words.split(",")]
        names = [*words[:2], f"{words[0]}_init"] if kind in ("C", "E") else [words[kind == "T"]]
        found |= {*names, *(f"{name}_c" for name in names if kind in ("L", "YL", "C", "E"))}
    return found


def is_local(name: str) -> bool:
    """Whether a rule says so."""
    return any(re.fullmatch(rule, name) for rule in LOCAL)


def generate(known: dict[str, str]) -> dict[str, str]:
    """The files' contents, from all functions and their parameters."""
    own = own_names(ROOT / "mpi/functions.def") | set(OWN_EXTENSIONS)
    blocking = {n: signature(p) for n, p in sorted(known.items()) if n not in own and not is_local(n)}
    plain = [name for name in blocking if not name.startswith("X_")]
    extensions = [*OWN_EXTENSIONS, *(name for name in blocking if name.startswith("X_"))]

    def rows(names: list[str]) -> str:
        return "".join(f"F({name})\n" for name in names)

    def typed(names: list[str]) -> str:
        return "".join(
            f"L({name[:-2]}, {blocking[name]})\n"
            if name[:-2] in blocking and name.endswith("_c") and name[1] != "_"
            else f"F({name}, {blocking[name]})\n"
            for name in names
        )

    made = "Made by mpi/preload/classify.py from the hosts' headers."
    return {
        "mpi/blocking.def": "/* Functions that stay the host's but may block in it, as F(name): a stand-in "
        "progresses our messages meanwhile\n   (mpi/shim/process/stand_in.hpp). "
        + made
        + " */\n"
        + rows(plain),
        "mpi/extensions.def": "/* Hosts' extensions, MPIX_, PMPIX_ and MPII_, as F(X_name): those that may block, and "
        "those that take our handles.\n   " + made + " */\n" + rows(extensions),
        "mpi/shim/process/signatures.def": "// Functions that may block, as F(name, (types)), and the large-count "
        "forms of some as L(name, (types)).\n// " + made + "\n"
        "// clang-format off\n" + typed(list(blocking)) + "// clang-format on\n",
    }


def all_functions() -> dict[str, str]:
    """Every function that a header of this machine declares."""
    known: dict[str, str] = {}
    for header in HEADERS:
        if not header.exists():
            continue
        for name, parameters in declarations(header):
            known.setdefault(name, parameters)
    return known


def main() -> int:
    """Writes the files or compares them."""
    check = sys.argv[1:] == ["--check"]
    known = all_functions()
    wrong = 0
    for path, text in generate(known).items():
        file = ROOT / path
        if check:
            # A machine may have fewer hosts than the one that wrote the files.
            missing = [
                line
                for line in text.splitlines()
                if line.startswith(("F(", "L(")) and line not in file.read_text()
            ]
            if missing:
                print(f"{path} lacks {', '.join(missing)}; run mpi/preload/classify.py", file=sys.stderr)
            own = own_names(ROOT / "mpi/functions.def")
            superfluous = sorted(own & set(re.findall(r"^F\((\w+)", file.read_text(), re.MULTILINE)))
            if superfluous:
                print(
                    f"{path} has {', '.join(superfluous)}, which Nearfield has a version of", file=sys.stderr
                )
            wrong += len(missing) + len(superfluous)
        else:
            file.write_text(text)
    print(f"{len(known)} functions")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
