# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Images at other points: resizes, whose weights are known, and samples at computed points.

A resize is a product with a constant matrix along each axis, or a look-up of the nearest elements. A sample gathers the
neighbors of its point, so that its work does not grow with the image.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from .. import ops
from ..constants import constant
from ..trace import current
from .registry import rule

_MOST_KNOWN = 1 << 20  # elements of a matrix that the program contains


def _known(matrix, dtype):
    """A constant of the program, so that the compiler sees that most elements are zero; an argument if it is large."""
    trace = current()
    if trace is None or matrix.size > _MOST_KNOWN:
        return ops.base.tensor_of(matrix.astype(np.float32), "a resize").astype(dtype)
    return trace.tensor(constant(trace.builder, matrix.astype(np.float32), "f32")).astype(dtype)


def along(x, axis, matrix):
    """The product of each line along `axis` with a constant matrix (results, extent)."""
    moved = ops.moveaxis(x, axis, x.ndim - 1)
    return ops.moveaxis(ops.matmul(moved, _known(matrix.T, x.dtype)), x.ndim - 1, axis)


def _cubic(distance, a):
    """The weights of a neighbor at a distance (>= 0) up to 1, and from 1 to 2, by Keys' convolution with coefficient a."""
    d = distance
    return ((a + 2) * d - (a + 3)) * d * d + 1, ((d - 5) * d + 8) * d * a - 4 * a


def _taps(low, part, kind):
    """The neighbors of a point, and their weights. low: the element before it, part: the distance from that."""
    if kind == "linear":
        return [(low, 1 - part), (low + 1, part)]
    near, far = [lambda d, k=k: _cubic(d, -0.75)[k] for k in (0, 1)]
    return [(low - 1, far(part + 1)), (low, near(part)), (low + 1, near(1 - part)), (low + 2, far(2 - part))]


def _nearest(x, axis, places, scale):
    """The element before each result, in float32 as in PyTorch."""
    n = x.shape[axis]
    at = np.minimum(np.floor(np.arange(places, dtype=np.float32) * np.float32(scale)).astype(np.int32), n - 1)
    if places % n == 0 and (at == np.arange(places) // (places // n)).all():
        return ops.repeat(x, places // n, axis)
    if n % places == 0 and (at == np.arange(places) * (n // places)).all():
        return x[(slice(None),) * axis + (slice(None, None, n // places),)]
    return ops.take(x, at, axis, "clip")


def _matrix(n, places, scale, kind, align):
    """The weights (places, n) of a resize. scale: the distance of two results, in elements."""
    matrix, i = np.zeros((places, n)), np.arange(places)
    at = i * ((n - 1) / max(1, places - 1)) if align else (i + 0.5) * scale - 0.5
    at = np.maximum(at, 0) if kind == "linear" else at
    low = np.floor(at).astype(int)
    for place, weight in _taps(low, at - low, kind):
        np.add.at(matrix, (i, np.clip(place, 0, n - 1)), weight)
    return matrix


def _resized(x, size, kind, align, factors):
    """x (batch, channels, space..) with its space resized; factors: of sizes, None where they follow from the sizes."""
    for d, places in enumerate(size):
        n, factor = x.shape[2 + d], factors[d]
        scale = n / places if not factor else 1 / factor
        if kind == "nearest":
            x = _nearest(x, 2 + d, places, scale)
        elif n != places or scale != 1:
            x = along(x, 2 + d, _matrix(n, places, scale, kind, align))
    return x


def _by_factors(kind):
    def resize(x, size=None, *options):
        align, factors = options if kind != "nearest" else (False, *options)
        size = list(size) if size is not None else [math.floor(n * f) for n, f in zip(x.shape[2:], factors)]
        return _resized(x, size, kind, align, factors or [None] * len(size))
    return resize


def _by_sizes(kind):
    def resize(x, size, *options):
        align, factors = (options[0], options[1:]) if kind != "nearest" else (False, options)
        return _resized(x, size, kind, align, [*factors, *[None] * (len(size) - len(factors))])
    return resize


for _kind, _names in dict(nearest=("nearest1d", "nearest2d", "nearest3d"), linear=("linear1d", "bilinear2d", "trilinear3d"),
                          cubic=("bicubic2d",)).items():
    for _name in _names:
        rule(f"upsample_{_name}.vec")(_by_factors(_kind))
        rule(f"upsample_{_name}.default")(_by_sizes(_kind))


_FILTERS = {  # the half width and the weight of a distance
    "bilinear": (1, lambda d: np.maximum(0, 1 - d)),
    "bicubic": (2, lambda d: np.where(d < 1, _cubic(d, -0.5)[0], np.where(d < 2, _cubic(d, -0.5)[1], 0))),
    "lanczos": (3, lambda d: np.where(d < 3, np.sinc(d) * np.sinc(d / 3), 0)),
}


def _filtered(n, places, kind, align, factor):
    """The weights (places, n) of a resize that averages over the distance of two results, so that it does not alias."""
    scale = (n - 1) / (places - 1) if align and places > 1 else 0.0 if align else 1 / factor if factor else n / places
    half, weight = _FILTERS[kind]
    spread = max(scale, 1.0)
    matrix = np.zeros((places, n))
    for i in range(places):
        center = scale * (i + 0.5)
        begin, end = max(int(center - half * spread + 0.5), 0), min(int(center + half * spread + 0.5), n)
        weights = weight(np.abs((np.arange(begin, end) - center + 0.5) / spread))
        matrix[i, begin:end] = weights / (weights.sum() or 1)
    return matrix


def _antialiased(kind):
    def resize(x, size, align, *factors):
        for d, (places, factor) in enumerate(itertools.zip_longest(size, factors)):
            x = along(x, 2 + d, _filtered(x.shape[2 + d], places, kind, align, factor))
        return x
    return resize


for _kind in _FILTERS:
    rule(f"_upsample_{_kind}2d_aa.default")(_antialiased(_kind))


def _reflected(at, low, span):
    """A coordinate reflected at low and at low + span."""
    if span <= 0:
        return ops.zeros_like(at)
    distance = ops.abs(at - low)
    turns = ops.floor(distance / span)
    rest = distance - turns * span
    return ops.where(ops.equal(ops.remainder(turns, 2), 0), rest + low, (span + low) - rest)


def _padded(at, n, padding, align):
    """A coordinate as `padding` moves it into [0, n - 1]: 0 (zeros) does not, 1 is the border, 2 reflects."""
    if padding == 2:
        at = _reflected(at, 0, n - 1) if align else _reflected(at, -0.5, n)
    return at if padding == 0 else ops.clip(at, 0, n - 1)


@rule("grid_sampler_2d.default", "grid_sampler_3d.default")
def _(x, grid, interpolation=0, padding=0, align_corners=False):
    """x (batch, channels, space..) at the points of grid (batch, out.., axes), whose last axis is of x, y(, z) in [-1, 1].

    interpolation: 0 of the 2 nearest elements of each axis, 1 the nearest, 2 cubic, of 4 elements of each axis.
    """
    space = x.shape[2:]
    points = []
    for d, n in enumerate(space):
        at = grid[..., len(space) - 1 - d]
        at = (at + 1) * ((n - 1) / 2) if align_corners else ((at + 1) * n - 1) / 2
        points.append(at if interpolation == 2 else _padded(at, n, padding, align_corners))
    taps = []  # of each axis: (element, weight or None)
    for at in points:
        low = ops.round(at) if interpolation == 1 else ops.floor(at)
        taps.append([(low, None)] if interpolation == 1 else _taps(low, at - low, "linear" if interpolation == 0 else "cubic"))
    flat, result = ops.reshape(x, (*x.shape[:2], -1)), None
    for chosen in itertools.product(*taps):
        place, inside, weight = None, None, None
        for n, (at, factor) in zip(space, chosen):
            at = _padded(at, n, padding, align_corners) if interpolation == 2 else at
            here = ops.logical_and(at >= 0, at <= n - 1)
            inside = here if inside is None else ops.logical_and(inside, here)
            number = ops.clip(at, 0, n - 1).astype("int32")
            place = number if place is None else place * n + number
            if factor is not None:
                weight = factor if weight is None else weight * factor
        line = lambda t: ops.reshape(t, (t.shape[0], 1, -1))
        found = ops.where(line(inside), ops.take_along_axis(flat, line(place), 2, "clip"), 0)
        found = found if weight is None else found * line(weight).astype(x.dtype)
        result = found if result is None else result + found
    return ops.reshape(result, (*x.shape[:2], *grid.shape[1:-1]))
