# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stable sorting along an axis, and searches in sorted tensors; NaN is last."""

from __future__ import annotations

from ..errors import ArgumentError, ShapeError
from ..ir.scalars import convert
from ..ir.sorting import sort as sorted_values
from ..ir.types import is_unsigned
from ..source import refuse
from .base import axis_of, op, operand, tensor_of
from .creation import zeros
from .elementwise import greater, greater_equal, logical_and, logical_not, minimum, where
from .indexing import take, take_along_axis
from .reductions import sum
from .shapes import expand_dims


def _sorted(trace, x, dim, descending, limit=None, indices=True):
    """The sorted elements along `dim`, or the first `limit` of them, and their indices (int64)."""
    b, value = trace.builder, operand(trace, x)
    unsigned = [is_unsigned(x.dtype.element)]
    if not indices:
        result, = sorted_values(b, [value], dim, unsigned, 1, descending, limit)
        return trace.tensor(result)
    result, numbers = sorted_values(b, [value, b.iota(x.shape, dim)], dim, unsigned, 1, descending, limit)
    return trace.tensor(result), trace.tensor(b.pointwise([numbers], numbers.type.shape, lambda n: convert(b, n, n.type, "i64")))


@op
def argsort(trace, x, axis=-1, descending=False):
    """Indices (int64) that sort x along `axis`; stable."""
    x = tensor_of(x, "argsort")
    return _sorted(trace, x, axis_of("argsort", axis, x.ndim), descending)[1]


@op
def sort(trace, x, axis=-1, descending=False):
    """x sorted along `axis`; NaN is last."""
    x = tensor_of(x, "sort")
    return _sorted(trace, x, axis_of("sort", axis, x.ndim), descending, indices=False)


@op
def top_k(trace, x, k, axis=-1, largest=True):
    """(values, int64 indices) of the k greatest, or least, elements along `axis`, in order.

    Raises ShapeError if k exceeds the extent.
    """
    x = tensor_of(x, "top_k")
    dim = axis_of("top_k", axis, x.ndim)
    if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k <= x.shape[dim]:
        raise refuse(ShapeError, f"k {k!r} of 'top_k' is not an integer from 0 to {x.shape[dim]}, the extent of axis {dim}")
    return _sorted(trace, x, dim, largest, k)


_COMPARED = 32  # up to so many sorted elements all are compared, instead of one for each halving


def searchsorted(boundaries, values, side="left"):
    """The place (int64) of each value among `boundaries`, sorted along their only or last axis.

    side "left": the number of boundaries less than the value; "right": also of equal ones. NaN is the greatest value.
    boundaries of rank 1 serve values of any shape; others have the values' extents except for the last axis.

    Raises ShapeError for other shapes, ArgumentError for another side.
    """
    boundaries, values = tensor_of(boundaries, "searchsorted"), tensor_of(values, "searchsorted")
    if side not in ("left", "right"):
        raise refuse(ArgumentError, f"side '{side}' of 'searchsorted' is not left or right")
    single = boundaries.ndim == 1
    if boundaries.ndim == 0 or not single and boundaries.shape[:-1] != values.shape[:-1]:
        raise refuse(ShapeError, f"boundaries {boundaries.shape} of 'searchsorted' for values {values.shape}: they have one axis, or the "
                                 "extents of the values except for the last")
    beyond = greater_equal if side == "left" else greater
    count = boundaries.shape[-1]
    if count <= _COMPARED:
        edges = boundaries if single else expand_dims(boundaries, -2)
        return sum(logical_not(beyond(edges, expand_dims(values, values.ndim))), -1)
    place = zeros(values.shape, "int64")
    for step in [1 << k for k in reversed(range(count.bit_length()))]:
        reached = minimum(place + (step - 1), count - 1)
        edge = take(boundaries, reached, 0) if single else take_along_axis(boundaries, reached, -1)
        place = where(logical_and(place + step <= count, logical_not(beyond(edge, values))), place + step, place)
    return place
