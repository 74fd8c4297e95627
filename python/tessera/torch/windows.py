# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions and pooling."""

from __future__ import annotations

import itertools
import math

import numpy as np

from .. import ops
from ..errors import ArgumentError
from ..ir import constants
from ..source import refuse
from .grids import along
from .registry import RULES, LazyResults, rule


@rule("convolution.default")
def _(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    # PyTorch writes one number for all axes, as for padding="valid".
    stride, padding, dilation, output_padding = (_numbers(v, x.ndim - 2) for v in (stride, padding, dilation, output_padding))
    if transposed:
        return ops.conv_transpose(x, weight, bias, stride, padding, output_padding, dilation, groups)
    return ops.conv(x, weight, bias, stride, padding, dilation, groups)


def _numbers(value, count):
    values = [value] if isinstance(value, int) else list(value)
    return values * count if len(values) == 1 else values


def _edges(x, window, stride, padding, dilation, ceil_mode):
    """Padding (before, after) of each spatial axis.

    ceil_mode pads for a last window that begins inside the axis or its padding.
    """
    pairs = []
    for n, k, s, p, d in zip(x.shape[2:], window, stride, padding, dilation):
        reach = d * (k - 1) + 1
        count = (n + 2 * p - reach) // s + 1
        if ceil_mode:
            count = -(-(n + 2 * p - reach) // s) + 1
            count -= (count - 1) * s >= n + p
        pairs.append((p, max(p, (count - 1) * s + reach - n - p)))
    return pairs


def _with_batch(x, space):
    """x with a batch axis, and whether it was added."""
    return (x, False) if x.ndim == space + 2 else (ops.expand_dims(x, 0), True)


def _max_pool(space, with_indices=False):
    def pool(x, window, stride=(), padding=0, dilation=1, ceil_mode=False):
        x, single = _with_batch(x, space)
        window, padding = _numbers(window, space), _numbers(padding, space)
        stride, dilation = _numbers(stride, space) or window, _numbers(dilation, space)
        edges = _edges(x, window, stride, padding, dilation, ceil_mode)
        whole = lambda y: ops.squeeze(y, 0) if single else y
        values = lambda: whole(ops.max_pool(x, window, stride, edges, dilation))
        return LazyResults(values, lambda: whole(_argmax_positions(x, window, stride, edges, dilation))) if with_indices else values()
    return pool


def _argmax_positions(x, window, stride, edges, dilation):
    """The row-major position of the maximum of each window in the space of x.

    Of equal elements it is the first, of NaN the last.
    """
    space = x.shape[2:]
    counts = [(n + low + high - d * (k - 1) - 1) // s + 1 for n, k, s, d, (low, high) in zip(space, window, stride, dilation, edges)]
    begins = [np.arange(count) * s - low for count, s, (low, _) in zip(counts, stride, edges)]
    first = [b + d * np.maximum(0, -(b // d)) for b, d in zip(begins, dilation)]  # the first element of a window outside the padding
    least = constants.least(x.dtype.element)
    padded = ops.pad(x, [(0, 0), (0, 0), *edges], least)
    best = place = None
    for offsets in itertools.product(*map(range, window)):
        reads = tuple(slice(k * d, k * d + (count - 1) * s + 1, s) for k, d, count, s in zip(offsets, dilation, counts, stride))
        here = padded[(slice(None), slice(None), *reads)]
        number = _row_major(space, [b + k * d for b, k, d in zip(begins, offsets, dilation)])
        if best is None:
            best, place = ops.full(here.shape, least, x.dtype), ops.broadcast_to(_row_major(space, first), here.shape)
        inside = ops.base.tensor_of(_is_inside(space, [b + k * d for b, k, d in zip(begins, offsets, dilation)]), "max_pool")
        more = ops.greater(here, best)
        greater = ops.logical_and(inside, ops.logical_or(more, ops.isnan(here)) if x.dtype.kind == "float" else more)
        best, place = ops.where(greater, here, best), ops.where(greater, number, place)
    return place


def _row_major(space, lines):
    number = np.zeros((), np.int64)
    for n, line in zip(space, lines):
        number = np.add.outer(number * n, line)
    return ops.base.tensor_of(number, "max_pool")


def _is_inside(space, lines):
    """Whether the positions of all lines are inside the space."""
    inside = np.ones((), bool)
    for n, line in zip(space, lines):
        inside = np.logical_and.outer(inside, (line >= 0) & (line < n))
    return inside


def _avg_pool(space):
    def pool(x, window, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        x, single = _with_batch(x, space)
        window, padding = _numbers(window, space), _numbers(padding, space)
        stride = _numbers(stride, space) or window
        edges = _edges(x, window, stride, padding, [1] * space, ceil_mode)
        total = ops.sum_pool(x, window, stride, edges)
        counts = np.ones((), np.float32)
        for n, k, s, p, places in zip(x.shape[2:], window, stride, padding, total.shape[2:]):
            begin = np.arange(places) * s - p
            low, high = (-p, n + p) if count_include_pad else (0, n)
            counts = np.multiply.outer(counts, np.minimum(begin + k, high) - np.maximum(begin, low)).astype(np.float32)
        counts = divisor_override if divisor_override is not None else math.prod(window) if (counts == math.prod(window)).all() else counts
        y = total / (counts if not hasattr(counts, "shape") else ops.base.tensor_of(counts, "avg_pool").astype(x.dtype))
        return ops.squeeze(y, 0) if single else y
    return pool


for _space in (1, 2, 3):
    rule(f"max_pool{_space}d.default")(_max_pool(_space))
    rule(f"max_pool{_space}d_with_indices.default")(_max_pool(_space, True))
    rule(f"avg_pool{_space}d.default")(_avg_pool(_space))


def _parts(n, places):
    """(begin, end) of each window of an adaptive pool."""
    return [(i * n // places, -(-(i + 1) * n // places)) for i in range(places)]


@rule("_adaptive_avg_pool2d.default", "adaptive_avg_pool2d.default", "_adaptive_avg_pool3d.default", "adaptive_avg_pool1d.default")
def _(x, size):
    space = x.shape[x.ndim - len(size):]
    if x.ndim == len(size) + 2 and not any(n % s for n, s in zip(space, size)):
        return ops.avg_pool(x, [n // s for n, s in zip(space, size)])
    for axis, (n, places) in enumerate(zip(space, size), x.ndim - len(size)):
        matrix = np.zeros((places, n))
        for i, (begin, end) in enumerate(_parts(n, places)):
            matrix[i, begin:end] = 1 / (end - begin)
        x = along(x, axis, matrix)
    return x


@rule("adaptive_max_pool2d.default", "adaptive_max_pool1d.default", "adaptive_max_pool3d.default")
def _(x, size):
    return LazyResults(lambda: _adaptive_max(x, size), lambda: _adaptive_places(x, size))


def _adaptive_max(x, size):
    for axis, places in enumerate(size, x.ndim - len(size)):
        parts = _parts(x.shape[axis], places)
        lines = (slice(None),) * axis
        x = ops.stack([ops.max(x[lines + (slice(*part),)], axis) for part in parts], axis)
    return x


def _adaptive_places(x, size):
    """The row-major position of the maximum of each window."""
    lead, space = x.shape[:x.ndim - len(size)], x.shape[x.ndim - len(size):]
    numbers, found = np.arange(math.prod(space)).reshape(space), []
    for window in itertools.product(*[_parts(n, places) for n, places in zip(space, size)]):
        at = tuple(slice(*part) for part in window)
        found.append(ops.take(numbers[at].reshape(-1), ops.argmax(ops.reshape(x[(slice(None),) * len(lead) + at], (*lead, -1)), -1), 0, "clip"))
    return ops.reshape(ops.stack(found, len(lead)), (*lead, *size))


@rule("_cdist_forward.default", "cdist.default")
def _(x, y, p=2.0, mode=None):
    return RULES["linalg_vector_norm.default"](ops.expand_dims(x, x.ndim - 1) - ops.expand_dims(y, y.ndim - 2), p, [-1])


@rule("_pdist_forward.default", "pdist.default")
def _(x, p=2.0):
    first, second = np.triu_indices(x.shape[0], 1)
    return RULES["linalg_vector_norm.default"](ops.take(x, first, 0, "clip") - ops.take(x, second, 0, "clip"), p, [-1])


@rule("_trilinear.default")
def _(a, b, c, expand_a, expand_b, expand_c, summed, unroll=1):
    def wide(x, axes):
        for axis in axes:
            x = ops.expand_dims(x, axis)
        return x
    return ops.sum(wide(a, expand_a) * wide(b, expand_b) * wide(c, expand_c), tuple(summed))
