"""What Nearfield carries of MPI, what it passes on, and why: writes docs/calls.md from the tables of functions.

    calls.py           writes it
    calls.py --check   fails when it is not what the tables say

Every row of mpi/functions.def belongs to one family below, and every function that may block in the host to one of those
passed on: what is new has to be described here. Reasons are rows of mpi/statistics.def.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/calls.md"

NODE = "on one node"
HALVES = "between ranks of a node, on communicators of one node or several"
OTHER_NODES = "partners on other nodes; communicators with processes of another MPI_COMM_WORLD, or between groups on several nodes"
TWO_LEVELS = (
    "on one node; over several nodes on two levels, nodes by Nearfield and what lies between by the host"
)
ELSEWHERE = "processes of another MPI_COMM_WORLD; intercommunicators over several nodes"
SEVERAL = "communicators over several nodes; " + ELSEWHERE
ON_TWO_LEVELS = (
    "over several nodes: user-defined operators, and types that an operator is not defined for; " + ELSEWHERE
)
# The first collective call of a communicator makes its team, and waits for all; one that does not block cannot.
TEAMLESS = "communicators on which no blocking collective has been called, which have no team yet; "
MOVING, COMBINING = (
    r"Barrier|Bcast|Allgather|Alltoall|Gather|Scatter",
    r"Reduce|Allreduce|Reduce_scatter_block",
)
SCANNING = r"Reduce_scatter|Scan|Exscan"
V_FORMS, AMONG_NEIGHBOURS = r"allgatherv|gatherv|scatterv", r"neighbor_\w+?"
# Functions by a pattern of their names, in the order of functions.def: what of them is carried, and what goes to the host.
FAMILIES = (
    (
        r"Init|Init_thread|Finalize|Session_(init|finalize)",
        "the host's; Nearfield begins and ends beside it",
        "always",
    ),
    (MOVING, TWO_LEVELS, ELSEWHERE),
    (COMBINING, TWO_LEVELS, ON_TWO_LEVELS),
    (SCANNING, NODE, SEVERAL),
    (rf"I({MOVING}|{COMBINING}|{SCANNING})", NODE, TEAMLESS + SEVERAL),
    (rf"({MOVING}|{COMBINING}|{SCANNING})_init", NODE, SEVERAL),
    (rf"I?({V_FORMS})(_init)?", NODE + ", by messages of their own", SEVERAL),
    (
        rf"I?{AMONG_NEIGHBOURS}(_init)?",
        NODE + ", by messages of their own; Cartesian, graph and distributed graph topologies",
        SEVERAL,
    ),
    (
        r"Alltoall[vw]",
        NODE + ", by messages of their own; over several nodes near pairs so and the others by the host",
        "in place over several nodes; " + ELSEWHERE,
    ),
    (r"Ialltoall[vw]|Alltoall[vw]_init", NODE + ", by messages of their own", SEVERAL),
    (
        r"Alloc_mem|Free_mem",
        "memory that peers map; placed by hints",
        "where there is no room for it; other kinds of memory (`mpi_memory_alloc_kinds`)",
    ),
    (r"Comm_set_info", "the hints `nearfield...`", "all other hints"),
    (
        r"Win_(create|allocate|allocate_shared)",
        "windows whose memory all of their ranks can reach",
        "windows that are not on one node, or with memory out of reach (`windows` in the statistics)",
    ),
    (r"Win_create_dynamic", "", "always"),
    (
        r"Win_\w+|Put|Get|R?accumulate|R?get_accumulate|Fetch_and_op|Compare_and_swap|Rput|Rget",
        "on windows of Nearfield's",
        "on windows of the host's; wrong arguments",
    ),
    (r"I?[bsr]?send(_init)?|I?recv|Recv_init", HALVES + "; any datatype, also on devices", OTHER_NODES),
    (r"Probe|Iprobe|Mprobe|Improbe|Mrecv|Imrecv", HALVES, OTHER_NODES),
    (r"I?sendrecv(_replace)?", HALVES + "; one half may be the host's", OTHER_NODES),
    (
        r"P(send|recv)_init|Pready(_range|_list)?|Parrived",
        HALVES
        + "; each partition leaves when it is ready, but for types of very many blocks and memory of devices",
        OTHER_NODES,
    ),
    (
        r"Wait|Test|Waitall|Testall|Waitany|Testany|Waitsome|Testsome|Request_get_status\w*|Start|Startall|Cancel"
        r"|Request_free",
        "requests of Nearfield's, also beside the host's in one array",
        "requests of the host's",
    ),
    (
        r"Buffer_\w+|(Comm|Session)_(attach|detach|i?flush)_buffer",
        "what is sent from the buffer to ranks of the node",
        "the same memory is attached there, for what is sent to ranks of other nodes",
    ),
    (
        r"Comm_(dup|dup_with_info|idup|idup_with_info|create|split|split_type|create_group|create_from_group|accept|connect|join|free)|Intercomm_\w+|Cart_\w+"
        r"|Graph_create|Dist_graph_\w+",
        "their contexts for messages; teams at their first collective call",
        "the communicators themselves, always",
    ),
    (
        r"Group_\w+|Comm_(remote_)?group",
        "",
        "always; Nearfield notes which session a group comes from",
    ),
    (r"(Op|Type)_free", "put off where requests of Nearfield's need it", "always in the end"),
    (r"(Request|Message)_(c2f|f2c|toint|fromint)", "handles of Nearfield's", "handles of the host's"),
    (
        r"T_\w+",
        "settings and statistics of Nearfield's, as variables behind the host's (docs/settings.md)",
        "variables, categories and sessions of the host's",
    ),
)
# Functions that may block in the host (mpi/blocking.def): a stand-in keeps our messages going meanwhile.
PASSED_ON = (
    (r"File_\w+", "files are the host's"),
    (
        r"Comm_(spawn|spawn_multiple|disconnect)|Close_port|Open_port|Lookup_name"
        r"|(Unp|P)ublish_name",
        "processes and communicators beyond MPI_COMM_WORLD",
    ),
    (r"Win_set_info", "hints of windows"),
)


def functions() -> list[str]:
    """Names without MPI_ of the rows of functions.def, in order; large-count twins are not rows."""
    names: list[str] = []
    text = (ROOT / "mpi/functions.def").read_text()
    for kind, words in re.findall(r"^(F|L|Y|YL|T|C|E)\(([^()]*)", text, re.MULTILINE):
        row = [word.strip() for word in words.split(",")]
        names += [*row[:2], f"{row[0]}_init"] if kind in ("C", "E") else [row[kind == "T"]]
    return names


def blocking() -> list[str]:
    """Names of the functions that may block in the host, without their large-count twins."""
    names = re.findall(r"^F\((\w+)\)", (ROOT / "mpi/blocking.def").read_text(), re.MULTILINE)
    return [name for name in names if not (name.endswith("_c") and name[:-2] in names)]


def reasons() -> list[tuple[str, str]]:
    """Names and meanings, as mpi/statistics.def has them."""
    text = (ROOT / "mpi/statistics.def").read_text()
    return re.findall(r'^REASON\(\w+, "([^"]+)", "([^"]+)"\)', text, re.MULTILINE)


def grouped(names: list[str], rules: tuple, where: str) -> list[list[str]]:
    """The names of each rule. Raises ValueError for a name without a rule, and a rule without a name."""
    groups: list[list[str]] = [[] for _ in rules]
    for name in names:
        for rule, group in zip(rules, groups, strict=True):
            if re.fullmatch(rule[0], name, re.IGNORECASE):
                group.append(name)
                break
        else:
            raise ValueError(f"scripts/calls.py does not say what becomes of MPI_{name}, in {where}")
    for rule, group in zip(rules, groups, strict=True):
        if not group:
            raise ValueError(f"scripts/calls.py describes {rule[0]}, which is not in {where}")
    return groups


def words_of(names: list[str]) -> str:
    """Names in a cell of a table."""
    return ", ".join(f"`{name}`" for name in names)


def page() -> str:
    """The page. Raises ValueError where the tables here and those of the library differ."""
    carried = grouped(functions(), FAMILIES, "mpi/functions.def")
    passed = grouped(blocking(), PASSED_ON, "mpi/blocking.def")
    lines = [
        "# Calls: carried, passed on, and why",
        "",
        "<!-- Made by scripts/calls.py from mpi/functions.def, mpi/blocking.def and mpi/statistics.def. -->",
        "",
        "Functions of MPI, without MPI_ and without their large-count forms, which go the same ways. What is carried is served",
        "in shared memory; wrong arguments always go to the host, which raises the errors.",
        "",
        "| functions | carried | to the host |",
        "| --- | --- | --- |",
        *(
            f"| {words_of(names)} | {what or 'nothing'} | {host} |"
            for (_, what, host), names in zip(FAMILIES, carried, strict=True)
        ),
        "",
        "## Passed on",
        "",
        "These may block in the host, for other ranks as well; a stand-in keeps messages of Nearfield's going meanwhile, and",
        "`NEARFIELD_STATS=1` counts them. What is in neither table the program calls in its host directly: nothing there waits",
        "for other ranks.",
        "",
        "| functions | why |",
        "| --- | --- |",
        *(f"| {words_of(names)} | {why} |" for (_, why), names in zip(PASSED_ON, passed, strict=True)),
        "",
        "## Reasons",
        "",
        "What the statistics say of collective calls that went to the host, under `why`.",
        "",
        "| reason | |",
        "| --- | --- |",
        *(f"| {reason} | {meaning} |" for reason, meaning in reasons()),
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    """Writes the page or compares it."""
    try:
        text = page()
    except ValueError as wrong:
        print(wrong, file=sys.stderr)
        return 1
    if sys.argv[1:] == ["--check"]:
        if not PAGE.exists() or PAGE.read_text() != text:
            print("docs/calls.md is not what the tables say; run scripts/calls.py", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
