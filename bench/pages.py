"""Writes docs/results.md's table, the pages of docs/results and the plots of docs/plots out of bench/results.

    python bench/pages.py           writes them
    python bench/pages.py --check   fails where they are not what the data say

A ratio divides Nearfield's median time by that of the quickest plain host in the same cell and the same state of the machine.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
nearfields_command = ""  # nothing has to be built

from bench.measured import (  # noqa: E402
    APPLICATIONS,
    OF_APPLICATIONS,
    OF_PROGRAMS,
    POINT_TO_POINT,
    PROGRAMS,
    SOURCES,
    WORSE,
    Cells,
    Row,
    application_word,
    heading,
    host_name,
    load,
    number,
    pairs,
    size,
    source,
    table,
    three,
    word_of,
)
from bench.pictures import PLOTS  # noqa: E402
from nearfield.summary import geometric_mean  # noqa: E402


# ---------------------------------------------------------------- tables
def cells(name: str) -> list[str]:
    """All cells of a file, a table for each number of ranks and state."""
    found = Cells(name)
    lines = []
    for ranks, state in found.groups():
        ratios = found.of(ranks, state)
        sizes = sorted({bytes for _, bytes in ratios if bytes})
        rows = []
        for label in dict.fromkeys(label for label, _ in ratios):
            row = [label]
            for bytes in sizes or [0]:
                cell = (label, bytes)
                if (label, 0) in ratios and bytes == (sizes or [0])[0] and cell not in ratios:
                    cell = (label, 0)  # without data: in the first column
                text = number(ratios[cell]) if cell in ratios else ""
                row.append(text if not text or found.is_complete(ranks, state, cell) else f"({text})")
            rows.append(row)
        lines += [f"### {heading(ranks, state)}", "", *table(["", *map(size, sizes or [0])], rows), ""]
    return [*source([name]), *lines]


def programs(_: str) -> list[str]:
    rows = []
    for (app, ranks, host), (plain, ours) in sorted(
        pairs().items(), key=lambda item: (item[0][1], list(PROGRAMS).index(item[0][0]))
    ):
        times = [
            f"{three(row['seconds'] * 1e3)} ({three(row['seconds_lower'] * 1e3)}-{three(row['seconds_upper'] * 1e3)})"
            for row in (plain, ours)
        ]
        rows.append(
            [
                PROGRAMS[app],
                str(ranks),
                host_name(host),
                *times,
                word_of(plain, ours),
                number(ours["seconds"] / plain["seconds"]),
                f"{plain['share']:.0%}",
                f"{ours['share']:.0%}",
            ]
        )
    titles = [
        "program",
        "ranks",
        "MPI",
        "plain, ms",
        "with Nearfield, ms",
        "verdict",
        "ratio of medians",
        "in MPI, plain",
        "with Nearfield",
    ]
    lines = [
        "The times are medians with quartiles of five runs with and five runs without Nearfield. *Faster* and *slower* mean that the quartiles do not overlap.",
        "",
    ]
    return [*lines, *table(titles, rows), "", *source(OF_PROGRAMS)]


def applications(name: str) -> list[str]:
    rows = []
    for key, found in load(name).items():
        modes = found["modes"]
        walls = [modes[mode]["wall"] for mode in ("plain", "both")]
        ratio = modes["both"]["ratio"]
        rows.append([
            APPLICATIONS[key],
            *(f"{wall['median']:.2f} ({wall['lower']:.2f}-{wall['upper']:.2f})" for wall in walls),
            application_word(found),
            f"{ratio['median']:.2f} ({ratio['lower']:.2f}-{ratio['upper']:.2f})",
            *(f"{modes[mode]['ratio']['median']:.2f}" for mode in ("heap alone", "MPI alone")),
            f"{modes['plain']['in_mpi']:.0%}",
            "nothing printed" if any("prints nothing" in line for line in found["verdict"]) else "same" if found["same"] else "differs",
        ])  # fmt: skip
    titles = [
        "application",
        "plain, s",
        "with Nearfield, s",
        "verdict",
        "ratio of the same round",
        "heap alone",
        "MPI alone",
        "in MPI, plain",
        "output",
    ]
    return [*table(titles, rows), "", *source([name])]


def torch(name: str) -> list[str]:
    lines = []
    found = load(name)
    for ranks in sorted({row["ranks"] for row in found}):
        of = {(row["op"], row["bytes"]): row for row in found if row["ranks"] == ranks}
        sizes = sorted({bytes for _, bytes in of if bytes})
        rows = []
        for op in dict.fromkeys(op for op, _ in of):
            cells = [of.get((op, bytes)) for bytes in (sizes if (op, 0) not in of else [0])]
            cells += [None] * (len(sizes) - len(cells))
            rows.append(
                [
                    op,
                    *(
                        f"{three(row['nearfield_us'])} / {three(row['gloo_us'])} = {number(row['ratio'])}"
                        if row
                        else ""
                        for row in cells
                    ),
                ]
            )
        lines += [f"### {ranks} ranks", "", *table(["", *map(size, sizes)], rows), ""]
    return [
        *source([name]),
        "An entry has the microseconds of a call or step: with Nearfield / with gloo = ratio. Calls without data stand in the first column.",
        "",
        *lines,
    ]


def tokens(name: str) -> list[str]:
    """The table of vLLM's workers."""
    rows = []
    for row in load(name):
        what = f"{row['op']} of {size(row['bytes'])}" if row["bytes"] else row["op"]
        rows.append(
            [str(row["ranks"]), what, row["unit"], *(three(row[way]) for way in ("nearfield", "gloo", "shm"))]
        )
    return [
        *table(["workers", "", "unit", "Nearfield", "gloo", "vLLM's shared memory"], rows),
        "",
        *source([name]),
    ]


def sums(name: str) -> list[str]:
    """The table of JAX's psum."""
    rows = [
        [str(row["ranks"]), size(row["bytes"]), *(three(row[way]) for way in ("gloo", "mpi", "nearfield"))]
        for row in load(name)
    ]
    return [
        *table(["processes", "bytes of each", "gloo, us", "MPI, us", "MPI with Nearfield, us"], rows),
        "",
        *source([name]),
    ]


def objects(name: str) -> list[str]:
    """The table of nearfield.mpi4py, under Nearfield."""
    found = [row for row in load(name) if row["mode"] == "nearfield"]
    lines = []
    for ranks in sorted({row["ranks"] for row in found}):
        of = {(row["object"], row["op"]): row for row in found if row["ranks"] == ranks}
        ops = list(dict.fromkeys(op for _, op in of))
        rows = [
            [
                OBJECTS[kind],
                *(
                    ", ".join(number(row["nearfield_us"] / row[f"{way}_us"]) for way in ("mpi4py", "pkl5"))
                    if (row := of.get((kind, op)))
                    else ""
                    for op in ops
                ),
            ]
            for kind in OBJECTS
        ]
        lines += [f"### {ranks} ranks", "", *table(["", *ops], rows), ""]
    return [*lines, *source([name])]


def starts(name: str) -> list[str]:
    """The table of the times of starts (bench/start.py)."""
    found = {(row["host"], row["ranks"], row["mode"]): row for row in load(name)}
    rows = []
    for (host, ranks, mode), plain in found.items():
        if mode != "plain":
            continue
        ours = found[host, ranks, "nearfield"]
        times = [
            f"{three(row['whole_ms'])} ({three(row['whole_quartiles_ms'][0])}-{three(row['whole_quartiles_ms'][1])})"
            for row in (plain, ours)
        ]
        more = f"{ours['whole_ms'] - plain['whole_ms']:+.1f}"
        inits = [three(row["init_ms"]) for row in (plain, ours)]
        rows.append([host_name(host), str(ranks), *times, more, *inits])
    titles = ["MPI", "ranks", "plain, ms", "with Nearfield, ms", "more", "MPI_Init, plain", "with Nearfield"]
    return [*table(titles, rows), "", *source([name])]


def suites(name: str) -> list[str]:
    runs: dict[tuple, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for run in load(name)["runs"]:
        runs[run["suite"], run["host"]][run["mode"]].append(run)
    rows = []
    for (suite, host), of in runs.items():
        plain, ours = ([run["seconds"] for run in of[mode]] for mode in ("plain", "nearfield"))
        failed = sum(len(run["failed"]) for run in of["nearfield"])
        ratio = statistics.median(ours) / statistics.median(plain)
        rows.append(
            [
                suite,
                host_name(host),
                str(of["plain"][0]["ran"]),
                str(len(plain)),
                f"{statistics.median(plain):.1f}",
                f"{statistics.median(ours):.1f} ({min(ours):.1f}-{max(ours):.1f})",
                number(ratio),
                str(failed),
            ]
        )
    return [
        *table(
            [
                "suite",
                "MPI",
                "tests",
                "runs each way",
                "plain, s",
                "with Nearfield, s",
                "ratio",
                "failed with Nearfield",
            ],
            rows,
        ),
        "",
        *source([name]),
    ]


def beside(name: str) -> list[str]:
    times = {
        (row["beside"], row["ranks"], row["host"], row["op"], row["bytes"], row["mode"]): row["mean"]
        for row in load(name)
    }
    ratios: dict[tuple, list[float]] = defaultdict(list)
    for key, plain in times.items():
        if key[-1] == "plain":
            ratios[key[0], *key[1:3]].append(times[*key[:-1], "nearfield"] / plain)
    groups = list(dict.fromkeys(key[1:] for key in ratios))
    rows = [
        [
            about,
            *(
                f"{geometric_mean(ratios[about, *group]):.2f}, {sum(ratio > 1.1 for ratio in ratios[about, *group])}"
                for group in groups
            ),
        ]
        for about in dict.fromkeys(key[0] for key in ratios)
    ]
    lines = [
        "Busy processes run on the same CPUs. Each entry has the geometric mean of 18 ratios (the mean time with Nearfield divided by that of the same host without it), and the number of ratios above 1.1.",
        "",
    ]
    return [
        *lines,
        *table(["beside", *(f"{ranks} ranks, {host_name(host)}" for ranks, host in groups)], rows),
        "",
        *source([name]),
    ]


def nodes(name: str) -> list[str]:
    of = {(row["op"], row["bytes"], row["mode"]): row for row in load(name) if "state" in row}
    sizes = sorted({key[1] for key in of})
    rows = []
    for op in dict.fromkeys(key[0] for key in of):
        row = [op]
        for bytes in sizes:
            plain, ours = of[op, bytes, "plain"], of[op, bytes, "nearfield"]
            ratio = ours["median"] / plain["median"]
            row.append(
                f"{three(plain['median'])} / {three(ours['median'])} = {number(ratio)}, {ours['algorithm']}"
            )
        rows.append(row)
    lines = [
        "Two simulated nodes have four ranks and one CPU each, and are connected by TCP. An entry has the microseconds without / with Nearfield = ratio, and the algorithm.",
        "",
    ]
    return [*lines, *table(["", *map(size, sizes)], rows), "", *source([name])]


def choosing(name: str) -> list[str]:
    found = load(name)["cells"]
    within = {limit: sum(cell["ratio"] <= limit for cell in found) for limit in (1.05, 1.1, 1.3)}
    lines = [
        f"Of {len(found)} cells the chosen algorithm is within 5 % of the fastest in {within[1.05]}, within 10 % in {within[1.1]}, within 30 % in {within[1.3]}. Cells beyond 10 %:",
        "",
    ]
    rows = [
        [f"{cell['op']} {size(cell['bytes'])}", cell["chosen"], cell["best"], f"{cell['ratio']:.2f}"]
        for cell in sorted(found, key=lambda cell: -cell["ratio"])
        if cell["ratio"] > 1.1
    ] or [["none", "", "", ""]]
    return [*lines, *table(["cell", "chosen", "fastest", "ratio"], rows), "", *source([name])]


def simulated(name: str) -> list[str]:
    of = {(row["order"], row["ranks"], row["bytes"]): row["ns"] for row in load(name)}
    columns = sorted({key[1:] for key in of if key[1] > 8})
    rows = [
        [order, *(three(of[order, *column] / 1e3) if (order, *column) in of else "" for column in columns)]
        for order in dict.fromkeys(key[0] for key in of if key[1:] in columns)
    ]
    titles = ["order", *(f"{ranks} ranks, {size(bytes)}" for ranks, bytes in columns)]
    return [
        "The simulator estimates how many microseconds an all-to-all takes; nothing here was measured.",
        "",
        *table(titles, rows),
        "",
        *source([name]),
    ]


OBJECTS = {
    "dict": "dict of five small things",
    "list": "list of 10,000 integers",
    "64K": "array of 64 KiB",
    "1M": "array of 1 MiB",
    "64M": "array of 64 MiB",
    "arrays": "dict of 100 arrays, 8 MB",
}


# ---------------------------------------------------------------- pages
CELLS = """Each figure is the median time with Nearfield divided by that of the quickest host without Nearfield. Below 1 is faster; above 1.05 is bold.
A cache line takes less than 100 ns between near cores, and more than 150 ns between far ones. A figure is in brackets if fewer than three
hosts were measured in that state. The head of each column is the number of bytes."""
Part = tuple[str, Callable[[str], list[str]], str]  # title, how, file
PAGES: dict[str, tuple[str, str, list[Part]]] = {
    "programs": (
        "Programs and applications",
        "The verdicts of applications are those of `nearfield compare`. The output *differs* where a program prints times or its use of memory; the data show the lines.",
        [
            ("Programs", programs, ""),
            ("Applications, 2 ranks", applications, OF_APPLICATIONS[0]),
            ("Applications, 2 ranks, once more", applications, OF_APPLICATIONS[1]),
            ("Applications, 8 ranks on 2 CPUs", applications, OF_APPLICATIONS[2]),
            ("Applications, 2 ranks, Xeon", applications, OF_APPLICATIONS[3]),
            ("Applications, 2 ranks, Zen 3", applications, OF_APPLICATIONS[4]),
            ("GROMACS, 2 ranks, Zen 3, nine runs", applications, OF_APPLICATIONS[5]),
        ],
    ),
    "collectives": (
        "Collectives",
        CELLS,
        [
            ("Zen 4", cells, "collectives-zen4-2-ranks"),
            ("Zen 4, after a change for far CPUs", cells, "collectives-zen4-2-ranks-far"),
            ("Zen 4, 8 ranks on 2 CPUs", cells, "collectives-zen4-8-ranks"),
            ("Zen 5", cells, "2-ranks-used"),
            ("Xeon, 2 to 16 ranks", cells, "xeon-2-8-16-ranks"),
            ("Xeon, IMB's loop", cells, "imb-xeon-2-ranks"),
            ("Vectors, Zen 4", cells, "v-forms-2-ranks"),
            ("Vectors, Zen 4, 8 ranks on 2 CPUs", cells, "v-forms-8-ranks"),
        ],
    ),
    "messages": (
        "Messages",
        CELLS,
        [
            ("Zen 4", cells, "messages-zen4-again"),
            ("Zen 4, more sizes and IMB's loop; an earlier build", cells, "messages-zen4-2-ranks"),
            ("Xeon", cells, "messages-xeon-2-ranks"),
            ("Patterns, Zen 5", cells, "patterns-2-ranks"),
        ],
    ),
    "rivals": (
        "Against stronger builds",
        f"{CELLS} The hosts include Open MPI 5.0.7 built with -O3, alone and with UCX 1.13 (bench/rivals/build.sh).",
        [("2 ranks", cells, "rivals-zen4-2-ranks"), ("8 ranks on 2 CPUs", cells, "rivals-zen4-8-ranks")],
    ),
    "one-sided": (
        "One-sided memory",
        f"{CELLS} The kind of window and the target stand in parentheses after the call.",
        [("2 ranks", cells, "windows-2-ranks"), ("8 ranks on 2 CPUs", cells, "windows-8-ranks")],
    ),
    "pytorch": (
        "PyTorch and JAX",
        "We measured `torch.distributed` of PyTorch 1.13 with Nearfield and with gloo, in turns, and `psum` of JAX 0.10 with MPICH.",
        [
            ("Zen 4", torch, "torch-zen4"),
            ("Xeon", torch, "torch-xeon-2-ranks"),
            ("vLLM's workers, 2 CPUs", tokens, "tokens-zen4"),
            ("JAX, 2 CPUs", sums, "jax-xeon"),
        ],
    ),
    "start": (
        "Start of a job",
        "A job calls MPI_Init, MPI_Allreduce with one integer, and MPI_Finalize. The times are those of the whole command, `nearfield run` "
        "included, with quartiles. If there are five or eight ranks, they share the two CPUs.",
        [("Zen 4", starts, "start-zen4"), ("Zen 3", starts, "start-zen3"), ("Xeon", starts, "start-xeon")],
    ),
    "objects": (
        "Python objects",
        "An entry has two ratios: the time of `nearfield.mpi4py` divided by that of mpi4py's own call, and by that of pkl5. Below 1 is faster. "
        "All three run under Nearfield on MPICH. A call is timed until the received data have been read. The machine was busy with other "
        "work (a load of 7 to 13).",
        [("Zen 4", objects, "objects-zen4")],
    ),
    "nodes": (
        "Several nodes",
        "",
        [("Open MPI", nodes, "nodes-2x4-openmpi"), ("MPICH", nodes, "nodes-2x4-mpich")],
    ),
    "beside": ("Beside other work", "", [("Busy processes", beside, "beside-zen4")]),
    "choosing": (
        "Choice of algorithms",
        "One job forces every algorithm in turn, and also uses the one that trials choose.",
        [
            ("2 ranks", choosing, "choosing-amd-epyc-25-17-2-ranks"),
            ("8 ranks on 2 CPUs", choosing, "choosing-amd-epyc-25-17-8-ranks"),
        ],
    ),
    "suites": (
        "Test suites of other projects",
        "Each suite ran with five ranks on two CPUs.",
        [("Suites", suites, "suites-5-ranks")],
    ),
    "simulated": (
        "Orders of all-to-all, simulated",
        "",
        [("192 cores", simulated, "simulated-alltoall-epyc")],
    ),
}


def page(name: str) -> str:
    title, text, parts = PAGES[name]
    lines = [f"# {title}", "", "<!-- Made by bench/pages.py from bench/results. -->", ""]
    lines += [text, ""] * bool(text)
    for part, make, file in parts:
        lines += [f"## {part}", "", *make(file)]
    return "\n".join(lines).rstrip() + "\n"


# ---------------------------------------------------------------- the summary
# A file may be followed by the only state that counts: of the other there is a later measurement.
SUMMARY = [
    ("messages", ["messages-zen4-again", "patterns-2-ranks", "2-ranks-used", "messages-xeon-2-ranks", "xeon-2-8-16-ranks"]),
    ("collectives", ["collectives-zen4-2-ranks near", "collectives-zen4-2-ranks-far far", "collectives-zen4-8-ranks", "2-ranks-used", "xeon-2-8-16-ranks", "imb-xeon-2-ranks"]),
    ("rivals", ["rivals-zen4-2-ranks", "rivals-zen4-8-ranks"]),
    ("one-sided", ["windows-2-ranks", "windows-8-ranks"]),
]  # fmt: skip


def summary() -> list[str]:
    """A line for each area, machine, number of ranks and state: complete cells."""
    rows = []
    for name, files in SUMMARY:
        for file, _, only in (each.partition(" ") for each in files):
            found = Cells(file)
            for ranks, state in found.groups():
                if only and state != only:
                    continue
                ratios = {
                    cell: ratio
                    for cell, ratio in found.of(ranks, state).items()
                    if found.is_complete(ranks, state, cell)
                    and (
                        name == "rivals" or (cell[0].split(",")[0] in POINT_TO_POINT) == (name == "messages")
                    )
                }
                if len(ratios) < 3:
                    continue
                (label, bytes), worst = max(ratios.items(), key=lambda item: item[1])
                machine = SOURCES["files"][file]["machine"]
                shown = {"zen4": "Zen 4", "zen5": "Zen 5", "xeon": "Xeon, 16 CPUs"}.get(machine, "Xeon")
                loop = " (IMB's loop)" if all("IMB" in label for label, _ in ratios) else ""
                above = sum(ratio > WORSE for ratio in ratios.values())
                rows.append([
                    f"[{PAGES[name][0].lower()}](results/{name}.md){loop}", shown, heading(ranks, state), str(len(ratios)),
                    f"{geometric_mean(ratios.values()):.2f}", f"{worst:.2f}: {label}" + f", {size(bytes)}" * bool(bytes), str(above),
                ])  # fmt: skip
    return table(["area", "machine", "ranks, state", "cells", "mean ratio", "worst", "above 1.05"], rows)


# ---------------------------------------------------------------- files
BEGIN, END = "<!-- summary: made by bench/pages.py from bench/results. -->", "<!-- end -->"


def files() -> dict[Path, str]:
    """The text that each written file has to have."""
    found = {ROOT / f"docs/results/{name}.md": page(name) for name in PAGES}
    found |= {ROOT / f"docs/plots/{name}.svg": draw() for name, draw in PLOTS.items()}
    path = ROOT / "docs/results.md"
    before, _, rest = path.read_text().partition(BEGIN)
    found[path] = "\n".join([before + BEGIN, "", *summary(), "", END]) + rest.partition(END)[2]
    return found


def main() -> int:
    """Writes the files or compares them."""
    wrong = []
    for path, text in files().items():
        if sys.argv[1:] != ["--check"]:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            wrong.append(str(path.relative_to(ROOT)))
    if wrong:
        print(f"{', '.join(wrong)}: not what bench/results says; run bench/pages.py", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
