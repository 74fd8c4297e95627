# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Text pictures of shardings."""

from __future__ import annotations

from .errors import ArgumentError
from .layout import layout
from .source import entry, refuse
from .tensor import Tensor, asarray


@entry
def visualize_sharding(tensor: Tensor, width: int = 60) -> str:
    """A text picture, drawn to scale, of which processes hold which part of a 1-D or 2-D tensor.

    Returns it and prints nothing.

    Processes that hold the same elements are separated by commas, `0,1`, and terms of a partial value by semicolons:
    `sum(0,1; 2,3)` has two terms, the first held by 0 and 1. The last line lists processes that hold nothing, if any.

    Raises ArgumentError for tensors of other ranks.
    """
    tensor = asarray(tensor)
    if tensor.ndim not in (1, 2):
        raise refuse(ArgumentError, f"visualize_sharding takes tensors of one or two dimensions, not shape {tensor.shape}")
    tensor._used()
    if tensor.sharding is None:
        return f"everything {list(tensor.shape)} on one device"
    of, boxes, empty = layout(tensor.sharding, tensor.ndim), {}, []
    for rank in tensor.mesh.devices:
        box = of.box(tensor.shape, tensor.mesh, rank)
        if all(s.stop > s.start for s in box):
            boxes.setdefault(tuple((s.start, s.stop) for s in box), []).append(rank)
        else:
            empty.append(rank)
    if not boxes:
        return f"nothing: the tensor of shape {list(tensor.shape)} has no elements"
    rows = sorted({box[0] for box in boxes}) if tensor.ndim == 2 else [(0, 1)]
    columns = sorted({box[-1] for box in boxes})
    text = {(row, column): _holders(of, tensor.mesh, boxes.get((row, column) if tensor.ndim == 2 else (column,), ()))
            for row in rows for column in columns}
    side = [f"{row[0]}:{row[1]} " if tensor.ndim == 2 else "" for row in rows]
    margin = max(map(len, side))
    least = [max(len(f"{c[0]}:{c[1]}"), *[len(text[row, c]) for row in rows]) + 2 for c in columns]
    cells = _widths([c[1] - c[0] for c in columns], least, width - margin - len(columns) - 1)
    heights = _widths([row[1] - row[0] for row in rows], [1] * len(rows), len(rows))
    line = " " * margin + "+" + "+".join("-" * n for n in cells) + "+"
    lines = [" " * (margin + 1) + " ".join(f"{c[0]}:{c[1]}".center(n) for c, n in zip(columns, cells)).rstrip(), line]
    for row, label, height in zip(rows, side, heights):
        for i in range(height):
            here = i == (height - 1) // 2
            lines.append((label if here else "").rjust(margin) + "|" + "|".join((text[row, c] if here else "").center(n) for c, n in zip(columns, cells)) + "|")
        lines.append(line)
    return "\n".join(lines + ([f"nothing on {','.join(map(str, empty))}"] if empty else []))


def _widths(extents, least, room) -> list[int]:
    """The width of each part in characters, at least `least` and about `room` in total.

    Widths are proportional to extents where possible.
    """
    scale = max(room / sum(extents), *[low / n for low, n in zip(least, extents)])
    scale = min(scale, max(4 * room, sum(least)) / sum(extents))  # very small parts may be drawn too large
    return [max(low, round(n * scale)) for low, n in zip(least, extents)]


def _holders(of, mesh, ranks) -> str:
    """The label of a part: the processes that hold it, grouped by terms if the value is partial."""
    if not of.partial:
        return ",".join(map(str, ranks))
    terms: dict[tuple, list[int]] = {}
    for rank in ranks:
        terms.setdefault(of.term(mesh, rank), []).append(rank)
    kinds = " and ".join(dict.fromkeys(kind for _, kind in of.partial))
    return f"{kinds}({'; '.join(','.join(map(str, term)) for term in terms.values())})" if ranks else ""
