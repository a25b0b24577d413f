"""Pages: one self-contained HTML file each, light and dark, on narrow and wide screens."""

from __future__ import annotations

import html
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --faint: #5b6670; --line: #d9dee3;
  --host: #b8c0c8; --ours: #1b6ca8; --worse: #c62828; --good: 27, 108, 168 }
@media (prefers-color-scheme: dark) { :root { --back: #14171b; --text: #e4e7eb; --faint: #9aa5b0; --line: #2f363d;
  --host: #56606a; --ours: #4aa3e0; --worse: #ff8a80; --good: 74, 163, 224 } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2em auto; padding: 0 1em;
  background: var(--back); color: var(--text) }
h1 { font-size: 1.6em; margin: 0 } h2 { font-size: 1.2em; margin: 2em 0 0.3em } .faint { color: var(--faint); font-size: 14px }
.lead { font-size: 1.15em }
figure { margin: 1em 0; overflow-x: auto } figure svg { max-width: 100%; height: auto; background: #fff; border-radius: 6px }
.scroll { overflow-x: auto } table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums }
td, th { padding: 3px 10px; text-align: right; white-space: nowrap } th { font-weight: 600; color: var(--faint) }
.scroll + .scroll { margin-top: 1em } .cell { padding: 2px 8px; border-radius: 3px }
tr + tr td { border-top: 1px solid var(--line) } .words { text-align: left; white-space: normal }
.worse { color: var(--worse); font-weight: 600 }
pre { overflow-x: auto; font-size: 13px; line-height: 1.35 } summary { cursor: pointer; color: var(--faint); margin: 0.6em 0 }
.bars { display: grid; grid-template-columns: max-content 1fr max-content; gap: 2px 12px; align-items: center }
.bars .group { grid-column: 1 / -1; font-weight: 600; margin-top: 0.8em } .bars .name { text-align: right }
.bars .bar { background: var(--host); border-radius: 3px; height: 16px }
.bars .bar div { background: var(--ours); border-radius: 3px; height: 16px } .bars .bar .worse { background: var(--worse) }
@media (max-width: 600px) { .bars { grid-template-columns: 1fr max-content } .bars .name { text-align: left; grid-column: 1 / -1 } }
"""


def write_page(path: Path, title: str, body: Iterable[str], style: str = "") -> None:
    """Writes the page to `path`; `title` is text, `body` HTML, `style` what its own parts need beside STYLE."""
    head = (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{html.escape(title)}</title><style>{STYLE}{style}</style><body>"
    )
    path.write_text(head + "\n".join(body) + "</body></html>\n", encoding="utf-8")


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], words: Collection[int] = (0,)) -> str:
    """A table of HTML cells; columns whose numbers are in `words` are aligned to the left."""

    def line(cells: Sequence[str], kind: str) -> str:
        marks = (" class=words" if n in words else "" for n in range(len(cells)))
        found = (f"<{kind}{mark}>{cell}</{kind}>" for cell, mark in zip(cells, marks, strict=True))
        return f"<tr>{''.join(found)}</tr>"

    lines = [line(titles, "th"), *(line(cells, "td") for cells in rows)]
    return f"<div class=scroll><table>{''.join(lines)}</table></div>"


def bars(groups: Iterable[tuple[str, Iterable[tuple[str, float, str]]]]) -> str:
    """Horizontal bars below the names of their groups, each with a name, what is filled of it (a ratio to the whole; beyond 1.05 it is
    full and red), and a word at its end."""
    parts = []
    for group, members in groups:
        parts.append(f"<div class=group>{html.escape(group)}</div>")
        for name, ratio, word in members:
            mark = " class=worse" if ratio > 1.05 else ""
            parts.append(
                f"<div class=name>{html.escape(name)}</div><div class=bar><div{mark} style='width:{min(ratio, 1):.1%}'>"
                f"</div></div><div>{html.escape(word)}</div>"
            )
    return f"<div class=bars>{''.join(parts)}</div>"


def folded(title: str, body: str) -> str:
    """What is shown when it is asked for."""
    return f"<details><summary>{html.escape(title)}</summary>{body}</details>"
