# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Boxes: the global indices of a shard, as one half-open range (begin, end) per dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Box = tuple[tuple[int, int], ...]


def whole(shape: Sequence[int]) -> Box:
    """The box of a whole tensor."""
    return tuple((0, n) for n in shape)


def of_slices(slices: Sequence[slice]) -> Box:
    """The half-open intervals of slices that have both ends."""
    return tuple((s.start, s.stop) for s in slices)


def extents(box: Box) -> tuple[int, ...]:
    """The shape of a box."""
    return tuple(end - begin for begin, end in box)


def volume(box: Box) -> int:
    """The number of elements of a box."""
    return math.prod(extents(box))


def intersect(a: Box, b: Box) -> Box | None:
    """The intersection of two boxes. Returns None if it is empty."""
    common = tuple((max(begin, first), min(end, last)) for (begin, end), (first, last) in zip(a, b))
    return common if all(begin < end for begin, end in common) else None


def inside(box: Box, of: Box) -> tuple[slice, ...]:
    """The slices of box `box` within box `of`, which contains it."""
    return tuple(slice(begin - first, end - first) for (begin, end), (first, _) in zip(box, of))


def tile(shape: Sequence[int], boxes: Sequence[Box]) -> str | None:
    """Why boxes do not partition `shape`, as a message. Returns None if they do."""
    total = math.prod(shape)
    if sum(map(volume, boxes)) != total:
        return f"its shards have {sum(map(volume, boxes))} elements of {total}"
    if not shape or len(boxes) < 2:
        return None
    limits = np.array(boxes, dtype=np.int64)  # [box, dimension, begin or end]
    for i in range(len(boxes)):
        common = np.minimum(limits[i, :, 1], limits[i + 1:, :, 1]) > np.maximum(limits[i, :, 0], limits[i + 1:, :, 0])
        if common.all(axis=1).any():
            return f"its shards {i} and {i + 1 + int(common.all(axis=1).argmax())} overlap"
    return None
