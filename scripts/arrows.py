#!/usr/bin/env python3
"""Checks the structure of the sources. A folder includes only folders below it in the drawing of docs/dev/architecture.md. Modules of
the command import each other without a cycle. A folder of the engine declares everything in the namespace of its name. The page names
all global variables that can change.

    arrows.py           fails for each include of a higher folder ("arrow up"), folder that the drawing lacks, cycle, declaration in a
                        foreign namespace, name that two types have, and variable that can change and is not named on the page
    arrows.py --draw    prints what each folder includes, from the top down
    arrows.py --svg     writes that as a picture, docs/plots/architecture.svg; arrows.py fails if the stored picture differs
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from html import escape
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DRAWING = "docs/dev/architecture.md"
PICTURE = "docs/plots/architecture.svg"
PLACES = ("engine", "heap", "mpi", "tools", "bench")
SOURCES = (".c", ".cpp", ".h", ".hpp", ".S", ".def")
# A row of the drawing: `engine/reach, waiting   what they are`.
ROW = re.compile(r"(?:^|\s)((?:(?:engine|mpi)/\w+|mpi|heap|bench|tools)(?:, \w+)*)(?:\s{2,}|$)")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
# Namespaces that are not the folder's name.
NAMESPACES = {
    "engine/base": "nearfield",
}

Graph = dict[str, dict[str, list[str]]]  # folder, what it includes, the lines that do


# ---------------------------------------------------------------- folders
def drawn() -> dict[str, str]:
    """Reads the drawing: its folders from the top down, those of one line from left to right, with their descriptions."""
    drawing = (ROOT / DRAWING).read_text().split("## Layers")[1].split("```")[1]
    found: dict[str, str] = {}
    own: list[str] = []  # of the last row
    words = ""
    for line in drawing.splitlines():
        behind = re.split(r"\s{2,}", line.strip(" |"))[-1]  # the last column
        if row := ROW.search(line):
            first, *others = row[1].split(", ")
            above = f"{Path(first).parent}/" if "/" in first else ""
            own = [first, *(above + other for other in others)]
            words = behind if row.end() < len(line.rstrip()) else ""
        elif own and "-->" not in line and re.match(r"[\s|\\]{12,}\S", line) and re.search(r"\w", behind):
            words += f" {behind}"
        each = words.split("; ")
        for number, name in enumerate(own):
            found[name] = each[number] if 1 < len(own) == len(each) else words
    return found


def layers() -> list[str]:
    return list(drawn())


def sources() -> list[Path]:
    return sorted(path for place in PLACES for path in (ROOT / place).rglob("*") if path.suffix in SOURCES)


def layer_of(path: Path, rows: list[str]) -> str:
    """The row that a file belongs to: its folder's, or that of the nearest folder around it."""
    folder = path.relative_to(ROOT).parent
    for each in (folder, *folder.parents):
        if str(each) in rows:
            return str(each)
    return str(folder)


def includes(rows: list[str]) -> Graph:
    """The includes between folders. An include that names no file below the root of the repository does not count."""
    graph: Graph = defaultdict(lambda: defaultdict(list))
    for path in sources():
        own = layer_of(path, rows)
        graph[own]  # also where it includes nothing
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not (found := INCLUDE.match(line)) or not (ROOT / found[1]).exists():
                continue
            other = layer_of(ROOT / found[1], rows)
            if other != own:
                graph[own][other].append(f"{path.relative_to(ROOT)}:{number}")
    return graph


def arrows_up(graph: Graph, rows: list[str]) -> Iterator[str]:
    """Texts for includes that lead up. Each cycle of includes has one, since every folder is in one row."""
    place = {name: number for number, name in enumerate(rows)}
    for own, others in graph.items():
        if own not in place:
            yield f"{own}: {DRAWING} does not draw it"
            continue
        for other, lines in others.items():
            if other not in place and other not in graph:
                yield f"{lines[0]}: {own} includes {other}, which {DRAWING} does not draw"
            elif place.get(other, len(rows)) < place[own]:
                yield f"{lines[0]}: {own} includes {other}, which lies above it in {DRAWING}"


# ---------------------------------------------------------------- modules of the command
def imports() -> dict[str, set[str]]:
    """The imports of each module of the command, also those inside of functions."""
    package = ROOT / "nearfield"
    modules = {str(path.relative_to(package))[:-3]: path for path in package.rglob("*.py")}
    found: dict[str, set[str]] = {}
    for name, path in sorted(modules.items()):
        names: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                names.update((node.module, *(f"{node.module}.{each.name}" for each in node.names)))
            elif isinstance(node, ast.Import):
                names.update(each.name for each in node.names)
        inside = {each.removeprefix("nearfield.").replace(".", "/") for each in names if "nearfield." in each}
        found[name] = inside & modules.keys()
    return found


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    """Returns a cycle, whose first member is also its last; an empty list if there is none."""
    done: set[str] = set()

    def search(way: list[str]) -> list[str]:
        for other in sorted(graph[way[-1]]):
            if other in way:
                return [*way[way.index(other) :], other]
            if other not in done and (found := search([*way, other])):
                return found
        done.add(way[-1])
        return []

    return next((found for name in sorted(graph) if (found := search([name]))), [])


# ---------------------------------------------------------------- names
CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|^\s*#(?:[^\n]*\\\n)*[^\n]*|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])+'""",
    re.DOTALL | re.MULTILINE,
)
NAMESPACE = re.compile(r"(?:inline\s+)?namespace\s*([\w:]*)\s*$")
TYPE = re.compile(
    r"(?:^|[;}>])\s*(?:class|struct|union|enum(?:\s+class|\s+struct)?)\s+(?:alignas\([^)]*\)\s*|\[\[[^\]]*\]\]\s*|__attribute__\S+\s*)*(\w+)\s*(?:final\s*)?(?::(?!:)[^;{}]*)?$"
)


def scopes(text: str) -> Iterator[tuple[str, str, str, int]]:
    """Yields each declaration at namespace scope: the namespace, the text before its brace or semicolon, that brace or semicolon,
    and the line."""
    text = CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    inside = [""]  # namespaces that are open
    depth = 0  # of braces that are none
    begin = 0
    for found in re.finditer(r"[{};]", text):
        at, sign = found.start(), found[0]
        before = text[begin:at]
        if depth == 0:
            line = text.count("\n", 0, at) + 1
            if sign == "{" and (name := NAMESPACE.search(before)):
                inside.append("::".join(filter(None, [inside[-1], name[1]])))
                yield inside[-1], "", "namespace", line
            elif sign == "}":
                if len(inside) > 1:
                    inside.pop()
            else:
                yield inside[-1], before.strip(), sign, line
                depth += sign == "{"
            begin = at + 1
        else:
            depth += (sign == "{") - (sign == "}")
            begin = at + 1
    return


def handed_on(declaration: str, own: str) -> bool:
    """Whether a using-declaration makes names of the folder's namespace visible in namespace nearfield."""
    inner = own.removeprefix("nearfield::")
    return bool(re.fullmatch(rf"using (?:{inner}::\w+(?:,\s*)?)+", declaration))


def foreign(rows: list[str]) -> Iterator[str]:
    """Declarations of the engine that are not in the namespace of their folder. Allowed are forward declarations of other
    folders' types in their namespaces, and using-declarations (handed_on)."""
    for path in sources():
        own = layer_of(path, rows)
        if not own.startswith("engine/") or path.suffix not in (".hpp", ".cpp"):
            continue
        wanted = NAMESPACES.get(own, f"nearfield::{Path(own).name}")
        for name, before, sign, line in scopes(path.read_text()):
            named = sign == ";" and (
                re.fullmatch(r"(?:class|struct)\s+\w+", before)
                or (name == "nearfield" and handed_on(before, wanted))
            )
            if not name.startswith("nearfield") or sign == "namespace" or named or not before:
                continue
            if name != wanted and not name.startswith(f"{wanted}::"):
                yield f"{path.relative_to(ROOT)}:{line}: {own} declares something in {name}, not in {wanted}"
                break


def types() -> dict[str, list[str]]:
    """The places of types at namespace scope, by name. Headers of the ABIs do not count, since only one is compiled at a time."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sources():
        where = path.relative_to(ROOT)
        if (
            where.parts[0] not in ("engine", "mpi")
            or "abi" in where.parts
            or path.suffix not in (".hpp", ".cpp")
        ):
            continue
        for name, before, sign, line in scopes(path.read_text()):
            if sign == "{" and (defined := TYPE.search(before)):
                found[defined[1]].append(f"{where}:{line} {name}")
    return found


# ---------------------------------------------------------------- variables
GLOBALS = "## Globals"  # the section of the drawing's page that names them
VARIABLE = re.compile(r"(?:^|\s)[\w:]+[*&\s]+(?:\w+::)*(\w+)(?:\[.*\])?$")
CONSTANT = re.compile(
    r"\b(?:constexpr|using|typedef|friend|extern|namespace|template|class|struct|enum|union)\b|(?:^|\s)const\b[^*]*$"
)


def variables() -> Iterator[str]:
    """Variables of the libraries at namespace scope that can change and that the page does not name. Variables of the shim
    need not be named if they are constinit."""
    page = (ROOT / DRAWING).read_text().partition(GLOBALS)[2].split("\n## ")[0]
    for path in sources():
        if path.relative_to(ROOT).parts[0] not in ("engine", "mpi", "heap") or path.suffix not in (
            ".hpp",
            ".cpp",
        ):
            continue
        for _, before, _, line in scopes(path.read_text()):
            declared = re.sub(r"\[\[.*?\]\]|__attribute__\s*\(\(.*?\)\)|alignas\(.*?\)", " ", before)
            declared = re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", declared.split("=")[0])).strip()
            if not declared or "(" in declared or CONSTANT.search(declared):
                continue
            if "constinit" in declared and path.is_relative_to(ROOT / "mpi/shim"):
                continue
            if (found := VARIABLE.search(declared)) and not re.search(rf"\b{found[1]}`", page):
                yield f"{path.relative_to(ROOT)}:{line}: {found[1]} is a global variable that {DRAWING} does not name"


# ---------------------------------------------------------------- picture
def reduced(graph: Graph, rows: list[str]) -> list[tuple[str, str]]:
    """The includes that do not follow from a chain of others; pre: there is no cycle."""
    below: dict[str, set[str]] = {}
    arrows = []
    for own in reversed(rows):
        others = [each for each in rows if each in graph.get(own, {})]
        by_others = set().union(*(below.get(other, set()) for other in others))
        arrows += [(own, other) for other in others if other not in by_others]
        below[own] = by_others | set(others)
    return arrows


def picture(graph: Graph) -> str:
    """The SVG: folders from the top down with their descriptions, and an arc for each include that does not follow from others."""
    names = drawn()
    step, left, top = 24, 190, 44
    at = {name: top + step * number for number, name in enumerate(names)}
    height, width = top + step * len(names), 1000
    parts = []
    for own, other in reduced(graph, list(names)):
        deep = left - 14 - min(left - 24, 16 + 6 * (at[other] - at[own]) / step)
        path = f"M{left - 6} {at[own]} C{deep:.0f} {at[own]} {deep:.0f} {at[other]} {left - 10} {at[other]}"
        tip = f"M{left - 10} {at[other] - 3} l6 3 l-6 3 z"
        parts.append(
            f'<g><title>{escape(own)} includes {escape(other)}</title><path d="{path}" fill="none"/><path d="{tip}"/></g>'
        )
    parts += ["</g>"]
    for name, words in names.items():
        words = words if len(words) < 110 else words[:108].rsplit(" ", 1)[0] + " ..."
        parts.append(f'<text x="{left}" y="{at[name] + 4}" font-weight="bold">{escape(name)}</text>')
        parts.append(f'<text x="{left + 150}" y="{at[name] + 4}">{escape(words)}</text>')
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" font-size="12">',
        '<style>g g:hover{stroke:#c05a00;fill:#c05a00;stroke-width:3}</style><rect width="100%" height="100%" fill="white"/>',
        f'<text x="{left}" y="20">An arc leads from a folder to one that it includes; arrows that follow from others are left out.</text>',
        '<g fill="#1b6ca8" stroke="#1b6ca8">',
        *parts,
        "</svg>\n",
    ])  # fmt: skip


# ---------------------------------------------------------------- commands
def draw(graph: Graph, rows: list[str]) -> None:
    for name in [*rows, *sorted(graph.keys() - set(rows))]:
        if name in graph:
            below = [each for each in rows if each in graph[name]]
            print(f"{name}: {', '.join(below) or '-'}")
    for name, names in imports().items():
        print(f"nearfield/{name}.py: {', '.join(sorted(names)) or '-'}")


def alike() -> list[str]:
    """Texts for names that several types at namespace scope have, with their places."""
    several = {name: places for name, places in types().items() if len(places) > 1}
    return [
        f"{name} names {len(places)} types: {', '.join(places)}" for name, places in sorted(several.items())
    ]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--svg", action="store_true")
    asked = parser.parse_args(arguments)
    rows = layers()
    graph = includes(rows)
    if asked.draw:
        draw(graph, rows)
        return 0
    if asked.svg:
        (ROOT / PICTURE).write_text(picture(graph))
        return 0
    wrong = [*arrows_up(graph, rows), *foreign(rows), *alike(), *variables()]
    if not wrong and (ROOT / PICTURE).read_text() != picture(graph):
        wrong = [f"{PICTURE} is not what folders include; run scripts/arrows.py --svg"]
    wrong += [f"{DRAWING} draws {name}, which is not there" for name in rows if name not in graph]
    if cycle := cycle_in(imports()):
        wrong.append("; ".join(f"nearfield/{a}.py imports {b}" for a, b in pairwise(cycle)))
    for each in wrong:
        print(each, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
