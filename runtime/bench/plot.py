"""A bar chart as SVG: how many tokens a second each back end generates, on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape

WIDTH, LEFT, RIGHT = 720, 110, 90
BAR, GAP, TOP, BOTTOM = 22, 10, 34, 34
_STYLE = "font-family:sans-serif;font-size:13px"
_COLOURS = {"bar": "#3b6ea5", "grid": "#c8c8c8", "text": "#777777"}
"""Readable on white and on black."""


def bar_chart(title: str, values: Mapping[str, float], unit: str) -> str:
    """Return an SVG of one horizontal bar a name; the axis starts at a power of ten below all values.

    Raises:
        ValueError: no values, or one that is not positive.
    """
    if not values or min(values.values()) <= 0:
        raise ValueError("a logarithmic chart needs positive values")
    low = math.ceil(math.log10(min(values.values()))) - 1
    high = max(low + 1, math.ceil(math.log10(max(values.values()))))
    scale = (WIDTH - LEFT - RIGHT) / (high - low)
    height = TOP + len(values) * (BAR + GAP) + BOTTOM
    parts = [_text(LEFT, 18, f"{title} ({unit}, logarithmic)")]
    for power in range(low, high + 1):
        x = LEFT + (power - low) * scale
        parts.append(_line(x, height - BOTTOM))
        parts.append(_text(x, height - BOTTOM + 18, f"{10.0**power:,.6g}", "middle"))
    for row, (name, value) in enumerate(values.items()):
        y = TOP + row * (BAR + GAP)
        length = (math.log10(value) - low) * scale
        parts.append(
            f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{_COLOURS["bar"]}"/>'
        )
        parts.append(_text(LEFT - 8, y + BAR - 6, name, "end"))
        parts.append(_text(LEFT + length + 6, y + BAR - 6, f"{value:,.0f}"))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" style="{_STYLE}">'
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def _line(x: float, bottom: float) -> str:
    return f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{bottom}" stroke="{_COLOURS["grid"]}"/>'


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    fill = _COLOURS["text"]
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}">{escape(text)}</text>'
