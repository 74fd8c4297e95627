# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stable sorting along an axis; NaN is last."""

from __future__ import annotations

from ..errors import ShapeError
from ..ir.scalars import convert
from ..ir.sorting import sort as sorted_values
from ..ir.types import is_unsigned
from ..source import refuse
from .base import axis_of, op, operand, tensor_of


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
