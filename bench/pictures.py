"""The plots of docs/plots out of bench/results; bench/pages.py writes them."""

from __future__ import annotations

from collections import defaultdict

from bench.drawing import BLUE, FAINT, GREEN, ORANGE, Dot, Lane, Panel, plot
from bench.measured import (
    APPLICATIONS,
    FAR,
    NEAR,
    NONE,
    OF_APPLICATIONS,
    OF_PROGRAMS,
    PROGRAMS,
    SOURCES,
    Cells,
    application_word,
    host_name,
    load,
    machine_of,
    pairs,
    size,
    word_of,
)

SHAPES = {"mpich": "circle", "openmpi": "square", "impi": "diamond"}


def counted(words: list[str]) -> str:
    """2 faster, 1 undecided."""
    return ", ".join(
        f"{words.count(each)} {each}"
        for each in ("faster", "slower", "undecided", "too short", "too few")
        if each in words
    )


def caption(names: list[str], more: list[str]) -> list[str]:
    machines = "; ".join(dict.fromkeys(map(machine_of, names)))
    commits = ", ".join(dict.fromkeys(SOURCES["files"][name]["commit"] for name in names))
    return [*more, f"{machines}. Commits {commits}. Data and commands: bench/results, sources.toml there."]


def programs_plot() -> str:
    """Every run of the applications, median and quartiles of the programs, plain above and Nearfield below, by the plain median."""
    rows = [*APPLICATIONS.values(), *PROGRAMS.values()]
    panels = [
        Panel(f"{ranks} ranks" + " on 2 CPUs" * (ranks > 2), 0.1 if ranks > 2 else 0.35, 1.8)
        for ranks in (2, 8)
    ]
    for panel, ranks in zip(panels, (2, 8), strict=True):
        for key, label in APPLICATIONS.items():
            lines: list[list[Dot]] = [[], []]
            words = []
            for name in OF_APPLICATIONS:
                found = load(name).get(key)
                if not found or found["ranks"] != ranks:
                    continue
                plain, ours = (found["modes"][mode]["wall"] for mode in ("plain", "both"))
                for line, colour, of in ((0, ORANGE, plain), (1, BLUE, ours)):
                    lines[line] += [
                        Dot(wall / plain["median"], colour, f"{wall:.2f} s") for wall in of["all"]
                    ]
                words.append(application_word(found))
            if words:
                panel.lanes[label] = Lane(lines, counted(words))
        for app, label in PROGRAMS.items():
            lines, words = [[], []], []
            for (name, count, host), (plain, ours) in pairs().items():
                if (name, count) != (app, ranks):
                    continue
                middle = plain["seconds"]
                for line, colour, row in ((0, ORANGE, plain), (1, BLUE, ours)):
                    ends = (row["seconds_lower"] / middle, row["seconds_upper"] / middle)
                    kept = row.get("seconds_all")  # files of before have median and quartiles alone
                    for seconds in kept or [row["seconds"]]:
                        about = f"{host_name(host)}: {seconds * 1e3:.3g} ms a step"
                        lines[line].append(
                            Dot(seconds / middle, colour, about, SHAPES[host], None if kept else ends)
                        )
                words.append(word_of(plain, ours))
            panel.lanes[label] = Lane(lines, counted(words))
    legend = [("plain", ORANGE, "circle"), ("with Nearfield", BLUE, "circle")]
    legend += [(f"{host_name(host)}", FAINT, shape) for host, shape in SHAPES.items()]
    more = [
        "Applications: every run under Debian's Open MPI 4.1.4, at 2 ranks in two measurements; time by the plain median. HPCC has no run at 8 ranks.",
        "Programs: median and quartiles of five runs under each MPI. Verdicts: nearfield compare's for each measurement of an application,",
        "and for each MPI of a program, where quartiles that overlap are undecided. Commands: bench/applications.py, bench/apps.py.",
    ]
    return plot(rows, panels, legend, caption([*OF_APPLICATIONS, *OF_PROGRAMS], more))


SIZES = (("up to 1 KiB", 1 << 10, GREEN), ("up to 64 KiB", 64 << 10, BLUE), ("longer", 1 << 62, ORANGE))


def cells_plot(
    shown: list[tuple[str, str, int, str]], more: list[str], left_out: tuple[str, ...] = ()
) -> str:
    """A panel for each (title, file, ranks, state); a dot for each size that all hosts have."""
    panels, rows = [], {}
    for title, name, ranks, state in shown:
        found = Cells(name)
        lanes: dict[str, list[Dot]] = defaultdict(list)
        for (label, bytes), ratio in sorted(found.of(ranks, state).items(), key=lambda item: item[0][1]):
            if found.is_complete(ranks, state, (label, bytes)) and label not in left_out:
                colour = next(colour for _, most, colour in SIZES if bytes <= most)
                lanes[label].append(Dot(ratio, colour, f"{size(bytes)}: {ratio:.2f}"))
        rows |= dict.fromkeys(lanes)
        panels.append(Panel(title, 0.08, 2.5, {label: Lane([dots]) for label, dots in lanes.items()}))
    legend = [(text, colour, "circle") for text, _, colour in SIZES]
    return plot(list(rows), panels, legend, caption([name for _, name, _, _ in shown], more))


def collectives_plot() -> str:
    shown = [
        ("Zen 4, 2 ranks, near", "collectives-zen4-2-ranks", 2, NEAR),
        ("Zen 4, 2 ranks, far", "collectives-zen4-2-ranks-far", 2, FAR),
        ("Zen 4, 8 ranks on 2 CPUs", "collectives-zen4-8-ranks", 8, NONE),
        ("Xeon, 16 ranks on 16 CPUs", "xeon-2-8-16-ranks", 16, NONE),
    ]
    return cells_plot(
        shown,
        ["By the quickest of MPICH, Open MPI and Intel MPI (Xeon: MPICH and Intel MPI). A dot is a size."],
        ("latency", "sendrecv"),
    )


def messages_plot() -> str:
    shown = [
        ("Zen 4, near", "messages-zen4-again", 2, NEAR),
        ("Zen 4, far", "messages-zen4-again", 2, FAR),
        ("Xeon", "messages-xeon-2-ranks", 2, NONE),
    ]
    return cells_plot(
        shown,
        [
            "By the quickest of MPICH, Open MPI and Intel MPI, on Zen 4 also Open MPI 5.0.7 with -O3. A dot is a size."
        ],
    )


PLOTS = {"programs": programs_plot, "collectives": collectives_plot, "messages": messages_plot}
