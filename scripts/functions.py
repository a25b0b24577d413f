"""Which argument of each MPI function is what, out of the standard's machine-readable form (pympistandard): writes
mpi/roles.def, a row per function in the order of their numbers (mpi/numbers.hpp).

    functions.py           writes it
    functions.py --check   fails when it is not what the standard's data and the lists of functions ask for

Needs pympistandard (requirements/main.txt); builds do not, since what it writes is committed.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.resources import files
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATH = "mpi/roles.def"
# Hosts' extensions: the function of the standard whose arguments theirs begin with.
EXTENSIONS = {
    "X_Comm_agree": "Comm_rank",
    "X_Comm_revoke": "Comm_rank",
    "X_Comm_shrink": "Comm_rank",
    "X_Stream_comm_create": "Comm_rank",
    "X_Stream_comm_create_multiplex": "Comm_rank",
    "X_Stream_recv": "Recv",
    "X_Stream_send": "Send",
    "X_Threadcomm_finish": "Comm_rank",
    "X_Threadcomm_free": "Comm_free",
    "X_Threadcomm_init": "Comm_rank",
    "X_Threadcomm_start": "Comm_rank",
    "X_Win_create_notify": "Win_sync",
    "X_Win_free_notify": "Win_sync",
    "X_Request_is_complete": "Request_get_status",
    "I_Win_get_attr": "Win_get_attr",
}
COUNTS = ("XFER_NUM_ELEM", "XFER_NUM_ELEM_NNI", "POLYXFER_NUM_ELEM", "POLYXFER_NUM_ELEM_NNI")
Side = dict[str, int | str]


def rows(path: str) -> list[tuple[str, list[str]]]:
    """The rows of a list of functions: its macro and its first arguments."""
    text = re.sub(r"/\*.*?\*/", "", (ROOT / path).read_text(), flags=re.DOTALL)
    found = re.findall(r"^(F|L|Y|YL|T|C|E)\(([^()]*)", text, re.MULTILINE)
    return [(kind, [word.strip() for word in words.split(",")]) for kind, words in found]


def names() -> list[str]:
    """Every function of mpi/each_slot.def, in its order, without MPI_."""
    plain, large = [], []
    for kind, words in rows("mpi/functions.def"):
        name = words[kind == "T"]
        forms = [name, words[1], f"{name}_init"] if kind in "CE" else [name]
        plain += forms
        if kind in ("L", "YL", "C", "E"):
            large += [f"{form}_c" for form in forms]
    lists = ("mpi/blocking.def", "mpi/extensions.def")
    return plain + large + [words[0] for path in lists for _, words in rows(path)]


def standard() -> dict[str, dict]:
    """The standard's functions, by their names in lower case."""
    return json.loads(files("pympistandard").joinpath("data/apis.json").read_text())


def fields(side: Side) -> str:
    """A side as its initializer."""
    order = ("buffer", "count", "type", "partner", "tag", "lists", "typed", "root_only")
    return "{" + ", ".join(f".{key} = {side[key]}" for key in order if key in side) + "}"


def sides(parameters: list[dict]) -> tuple[Side, Side]:
    """What a call sends and what it receives: positions of buffer, count and type, and with whom."""
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


def roles(name: str, parameters: list[dict]) -> str:
    """The initializer of a function's row."""
    parameters = [p for p in parameters if "c_parameter" not in p["suppress"]]
    found: dict[str, int | str] = {}
    for at, p in enumerate(parameters):
        if p["kind"] == "COMMUNICATOR" and p["param_direction"] == "in":
            found.setdefault("communicator", at)
        if p["kind"] == "WINDOW" and p["param_direction"] == "in":
            found.setdefault("window", at)
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
    order = ("communicator", "window", "root", "operation", "requests", "request_count")
    words = [f".{key} = {found[key]}" for key in order if key in found]
    words += [f".sends = {fields(sends)}"] if sends else []
    words += [f".receives = {fields(receives)}"] if receives else []
    words += [".neighbors = true"] if "eighbor" in name else []
    words += [".large = true"] if name.endswith("_c") else []
    return ", ".join(words)


def generate() -> str:
    """The file's contents."""
    known = standard()
    lines = [
        "/* What each argument of an MPI function is, by its position, as ROLES(name, members of Roles) (mpi/roles.hpp).",
        "   Made by scripts/functions.py from the standard's machine-readable form. */",
        "// clang-format off",
    ]
    for name in names():
        plain = name.removesuffix("_c")
        plain = EXTENSIONS.get(plain, plain)
        of = known.get(f"mpi_{plain.lower()}")
        if not of and not plain.endswith(("_c2f", "_f2c")):
            raise SystemExit(
                f"the standard has no MPI_{plain}; scripts/functions.py needs an entry in EXTENSIONS"
            )
        row = roles(name, of["parameters"]) if of else ""
        lines.append(f"ROLES({name}, {row})" if row else f"ROLES({name})")
    return "\n".join([*lines, "// clang-format on", "#undef ROLES", ""])


def main() -> int:
    """Writes the file or compares it."""
    if sys.argv[1:] != ["--check"]:
        (ROOT / PATH).write_text(generate())
    elif (ROOT / PATH).read_text() != generate():
        print(f"{PATH} is not what the standard's data says; run scripts/functions.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
