# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A roofline (Williams et al., 2009) as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 520, 70, 20, 30, 50
INK, QUIET, LINE = "#222", "#777", "#1f6feb"


def svg(points: Sequence[tuple[str, float, float]], bandwidth: float, peak: float) -> str:
    """points: (name, operations per byte, operations per second). bandwidth in bytes per second, peak in operations per second."""
    right = max([64.0, *[x for _, x, _ in points]]) * 2
    low, high = min([bandwidth / 4, *[y for _, _, y in points]]) / 2, peak * 3

    def across(x):
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(x / 0.25) / math.log(right / 0.25)

    def up(y):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * math.log(y / low) / math.log(high / low)
    ridge = peak / bandwidth
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="11">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
             f'<polyline fill="none" stroke="{LINE}" stroke-width="2" points="{across(0.25):.1f},{up(0.25 * bandwidth):.1f} '
             f'{across(ridge):.1f},{up(peak):.1f} {across(right):.1f},{up(peak):.1f}"/>',
             _text(across(ridge) + 8, up(peak) - 8, f"{peak / 1e9:.0f} GFLOP/s", LINE),
             _text(across(0.3), up(0.3 * bandwidth) - 12, f"{bandwidth / 1e9:.1f} GB/s", LINE),
             _text(WIDTH / 2, HEIGHT - 12, "operations a byte (an element that only moves counts as its bytes)", QUIET, "middle"),
             _text(14, TOP - 12, "operations a second", QUIET)]
    for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1):
        parts.append(_text(LEFT - 6, up(10**power) + 4, f"1e{power}", QUIET, "end"))
    for power in range(-2, math.floor(math.log2(right)) + 1, 2):
        parts.append(_text(across(2**power), HEIGHT - BOTTOM + 16, f"{2**power:g}", QUIET, "middle"))
    for name, x, y in points:
        parts.append(f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="3.5" fill="{INK}"><title>{name}</title></circle>')
    parts += [_text(x, y, name, INK) for name, x, y in _apart([(name, across(x) + 6, up(y) + 4) for name, x, y in points])]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _apart(labels):
    """The labels from top to bottom, moved down to avoid overlaps."""
    placed = []
    for name, x, y in sorted(labels, key=lambda each: (each[2], each[1])):
        while any(abs(x - other) < 6.5 * max(len(name), len(text)) and abs(y - height) < 11 for text, other, height in placed):
            y += 2
        placed.append((name, x, y))
    return placed


def _text(x, y, text, color, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{color}" text-anchor="{anchor}">{text}</text>'
