"""Dot plots as SVG, without a library: the same data give the same bytes everywhere."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

ORANGE, BLUE, GREEN, INK, FAINT = "#c05a00", "#1b6ca8", "#2e7d32", "#222222", "#999999"
CHARACTER = 6.1  # width of one, of 11 px


@dataclass(frozen=True)
class Dot:
    """A value with a colour, a shape (circle, square, diamond), its quartiles if they are all there is, and what a pointer shows."""

    value: float
    colour: str
    about: str
    shape: str = "circle"
    ends: tuple[float, float] | None = None


@dataclass(frozen=True)
class Lane:
    """A row of one panel: lines of dots from the top down, and words to the right."""

    lines: Sequence[Sequence[Dot]]
    words: str = ""


@dataclass(frozen=True)
class Panel:
    title: str
    low: float
    high: float
    lanes: dict[str, Lane] = field(default_factory=dict)  # by the row's label


def plot(rows: list[str], panels: list[Panel], legend: list[tuple[str, str, str]], caption: list[str]) -> str:
    """Panels side by side that share rows. The axis is logarithmic, with a line at 1. `legend`: words, colour, shape."""
    lines = max(len(lane.lines) for panel in panels for lane in panel.lanes.values())
    height = 12 + 7 * lines
    left = 16 + CHARACTER * max(map(len, rows))
    words = CHARACTER * max(len(lane.words) for panel in panels for lane in panel.lanes.values())
    width = max(150.0, (1000 - left) / len(panels) - words - 24)
    top, bottom = 66, 66 + height * len(rows)
    parts = []
    for number, panel in enumerate(panels):
        start = left + number * (width + words + 24)
        parts += [
            _text(start + width / 2, 44, panel.title, "middle", bold=True),
            *_axis(panel, start, width, top, bottom),
        ]
        for row, label in enumerate(rows):
            y = top + height * row
            if row % 2 and not number:
                total = left + len(panels) * (width + words + 24)
                parts.insert(0, f'<rect x="0" y="{y}" width="{total:.0f}" height="{height}" fill="#f4f4f4"/>')
            if not number:
                parts.append(_text(left - 8, y + height / 2 + 4, label, "end"))
            if lane := panel.lanes.get(label):
                gap = height / (len(lane.lines) + 1)
                for place, dots in enumerate(lane.lines):
                    parts += [_dot(dot, panel, start, width, y + gap * (place + 1)) for dot in dots]
                parts.append(_text(start + width + 8, y + height / 2 + 4, lane.words))
    x = left
    for text, colour, shape in legend:
        parts += [_mark(x, 18, colour, shape), _text(x + 9, 22, text)]
        x += 30 + CHARACTER * len(text)
    parts += [
        _text(
            left,
            bottom + 36,
            "time with Nearfield by the plain host's, logarithmic; left of the line is faster",
        )
    ]
    caption = [part for line in caption for part in textwrap.wrap(line, 160)]
    parts += [_text(8, bottom + 58 + 15 * number, line, faint=True) for number, line in enumerate(caption)]
    total = left + len(panels) * (width + words + 24)
    size = f'width="{total:.0f}" height="{bottom + 60 + 15 * len(caption)}"'
    box = f'viewBox="0 0 {total:.0f} {bottom + 60 + 15 * len(caption)}"'
    style = 'font-family="system-ui, sans-serif" font-size="11"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} {style}>'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>\n"])


def _at(value: float, panel: Panel, start: float, width: float) -> float:
    value = min(max(value, panel.low), panel.high)
    return start + width * math.log(value / panel.low) / math.log(panel.high / panel.low)


def _axis(panel: Panel, start: float, width: float, top: float, bottom: float) -> list[str]:
    parts = []
    for tick in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.7, 1, 1.4, 2, 5):
        if panel.low <= tick <= panel.high:
            x = _at(tick, panel, start, width)
            colour, thick = (INK, 1.2) if tick == 1 else ("#dddddd", 1)
            parts.append(
                f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}" stroke="{colour}" stroke-width="{thick}"/>'
            )
            parts.append(_text(x, bottom + 15, f"{tick:g}", "middle"))
    return parts


def _dot(dot: Dot, panel: Panel, start: float, width: float, y: float) -> str:
    x = _at(dot.value, panel, start, width)
    line = ""
    if dot.ends:
        low, high = (_at(end, panel, start, width) for end in dot.ends)
        line = f'<line x1="{low:.1f}" y1="{y:.1f}" x2="{high:.1f}" y2="{y:.1f}" stroke="{dot.colour}"/>'
    return f"<g><title>{escape(dot.about)}</title>{line}{_mark(x, y, dot.colour, dot.shape)}</g>"


def _mark(x: float, y: float, colour: str, shape: str) -> str:
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}" fill-opacity="0.75"/>'
    turned = f' transform="rotate(45 {x:.1f} {y:.1f})"' if shape == "diamond" else ""
    at = f'x="{x - 2.6:.1f}" y="{y - 2.6:.1f}" width="5.2" height="5.2"'
    return f'<rect {at} fill="{colour}" fill-opacity="0.75"{turned}/>'


def _text(
    x: float, y: float, text: str, anchor: str = "start", bold: bool = False, faint: bool = False
) -> str:
    style = ' font-weight="bold"' * bold
    colour = "#555555" if faint else INK
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"{style}>{escape(text)}</text>'
    )
