"""Plots as SVG text: bars of one figure for each gateway, and lines over time.

In: numbers by gateway. Out: SVG documents without scripts, fonts or references. Must never: draw an axis that does not begin at 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

from bench.gateway.result import Point

COLORS = ("#0b7285", "#e8590c", "#5f3dc4", "#2b8a3e")
_WIDTH, _HEIGHT, _BAR, _LEFT, _TOP = 640, 260, 26, 150, 34
_STYLE = "font-family='sans-serif' font-size='12'"


def draw_bars(title: str, values: Mapping[str, float]) -> str:
    """Return one horizontal bar for each gateway."""
    most = max((*values.values(), 0.0)) or 1.0
    room = _WIDTH - _LEFT - 90
    parts = [_text(8, 18, title, bold=True)]
    for at, (name, value) in enumerate(values.items()):
        y = _TOP + at * (_BAR + 8)
        width = max(1.0, room * value / most)
        parts += [
            _text(8, y + 17, name),
            f"<rect x='{_LEFT}' y='{y}' width='{width:.1f}' height='{_BAR}' fill='{COLORS[at % len(COLORS)]}'/>",
            _text(_LEFT + width + 6, y + 17, f"{value:g}"),
        ]
    return _document(_TOP + len(values) * (_BAR + 8) + 6, parts)


def draw_steps(title: str, across: str, series: Mapping[str, Sequence[Point]]) -> str:
    """Return a line for each gateway whose values apply until the next point."""
    return draw_lines(title, across, {name: _steps(line) for name, line in series.items()})


def draw_lines(title: str, across: str, series: Mapping[str, Sequence[Point]]) -> str:
    """Return a line for each gateway; `across` names the horizontal axis."""
    points = [point for one in series.values() for point in one]
    right = _step_up(max((x for x, _ in points), default=1.0))
    top = _step_up(max((y for _, y in points), default=1.0))
    left, bottom = 60, _HEIGHT - 36
    wide, high = _WIDTH - left - 16, bottom - _TOP - 16
    parts = [_text(8, 18, title, bold=True), _text(_WIDTH - 16, _HEIGHT - 4, across, end=True)]
    for share in (0.0, 0.5, 1.0):
        y = bottom - high * share
        parts += [
            f"<line x1='{left}' y1='{y:.1f}' x2='{left + wide}' y2='{y:.1f}' stroke='#ccc'/>",
            _text(left - 6, y + 4, f"{top * share:g}", end=True),
            _text(left + wide * share, bottom + 16, f"{right * share:g}", end=share == 1.0),
        ]
    for at, (name, line) in enumerate(series.items()):
        color = COLORS[at % len(COLORS)]
        path = " ".join(
            f"{left + wide * max(0.0, x) / right:.1f},{bottom - high * y / top:.1f}"
            for x, y in line
        )
        parts += [
            f"<polyline points='{path}' fill='none' stroke='{color}' stroke-width='1.5'/>",
            f"<rect x='{300 + at * 130}' y='8' width='10' height='10' fill='{color}'/>",
            _text(314 + at * 130, 18, name),
        ]
    return _document(_HEIGHT, parts)


def _steps(line: Sequence[Point]) -> list[Point]:
    made = list(line[:1])
    for (_, before), (x, y) in pairwise(line):
        made += [(x, before), (x, y)]
    return made


def _step_up(value: float) -> float:
    """Return the next value of 1, 2 or 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * 0.999)


def _text(x: float, y: float, text: str, *, bold: bool = False, end: bool = False) -> str:
    weight = " font-weight='bold'" if bold else ""
    anchor = " text-anchor='end'" if end else ""
    return f"<text x='{x:.1f}' y='{y:.1f}'{weight}{anchor}>{escape(text)}</text>"


def _document(height: float, parts: Sequence[str]) -> str:
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{_WIDTH}' height='{height:g}' "
        f"viewBox='0 0 {_WIDTH} {height:g}' {_STYLE}>"
    )
    return "\n".join(
        [head, "<rect width='100%' height='100%' fill='white'/>", *parts, "</svg>", ""]
    )
