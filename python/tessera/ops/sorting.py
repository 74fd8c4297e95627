# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sorting along an axis, by counting (tessera.ir.sorting): the work is the square of the axis' length. Equal elements stay in their order,
NaN comes last."""

from __future__ import annotations

from ..errors import ShapeError
from ..ir import TensorType
from ..ir.scalars import convert
from ..ir.sorting import ordered, placed, places
from ..ir.types import is_unsigned
from ..source import refuse
from .base import axis_of, op, operand, tensor_of
from .indexing import take_along_axis


@op
def argsort(trace, x, axis=-1, descending=False):
    """The indices (int64) that put the elements along `axis` in order."""
    x = tensor_of(x, "argsort")
    return _first(trace, x, axis_of("argsort", axis, x.ndim), None, descending)


def _first(trace, x, dim, count, descending):
    """The indices of the first elements in order."""
    b = trace.builder
    count = x.shape[dim] if count is None else count
    if not x.size or not count:
        return trace.tensor(b.constant(0, TensorType(tuple(count if d == dim else n for d, n in enumerate(x.shape)), "i64")))
    key = ordered(b, operand(trace, x), is_unsigned(x.dtype.element))
    numbers = placed(b, None, places(b, [key], dim, descending), dim, count)
    return trace.tensor(b.pointwise([numbers], numbers.type.shape, lambda n: convert(b, n, n.type, "i64")))


@op
def sort(trace, x, axis=-1, descending=False):
    """The elements along `axis` in order."""
    x = tensor_of(x, "sort")
    dim = axis_of("sort", axis, x.ndim)
    return take_along_axis(x, _first(trace, x, dim, None, descending), dim)


@op
def top_k(trace, x, k, axis=-1, largest=True):
    """(values, indices) of the k greatest (or least) elements along `axis`, in order."""
    x = tensor_of(x, "top_k")
    dim = axis_of("top_k", axis, x.ndim)
    if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k <= x.shape[dim]:
        raise refuse(ShapeError, f"k {k!r} of 'top_k': axis {dim} of shape {x.shape} has {x.shape[dim]} elements")
    indices = _first(trace, x, dim, k, largest)
    return take_along_axis(x, indices, dim), indices
